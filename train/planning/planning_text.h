// Says for people what was planned for a target of memory, and why nothing could be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/planning/planned_options.h"

namespace strata::train {

/// Several lines without the last newline: that drives wear out within a year, if they do; the
/// settings that were made, or that none had to be;
/// memory per tier, seconds per step and what bounds them; what each setting is for
/// (reasons_text.h); what the limit costs; changes of bits.
std::string describe_planned(const PlannedRun& planned, const ResolvedConfig& config,
                             const MemoryBudget& budget);

/// Returns the fastest step, if it is faster than settings that fit as they are, which stay, by
/// what a run could show, and fits, too. Its limit of host memory is what it needs.
std::optional<plan::PlannedStep> faster_than_asked(const PlannedRun& planned,
                                                   const MemoryBudget& budget);

/// A rate as a plain number: "5.25", "25250".
std::string rate_text(double per_second);

/// Where the times come from by which steps are foreseen: measured, if times of instructions are
/// known that runs have shown, else as the rates of the device.
machine::Source source_of_rates(const machine::Machine& machine);

/// Lists what was compiled, each set of flags once, the fastest first. Flags that were compiled
/// more than once, with other limits or more thoroughly, come as they last fitted; those that were
/// chosen, which come first of equally fast ones, with the step that was chosen.
struct Compared {
  plan::Attempt attempt;
  bool is_chosen = false;
};
std::vector<Compared> compared(const PlannedRun& planned, const ResolvedConfig& config,
                               const MemoryBudget& budget);

/// A table of these: seconds per step, those guessed before, settings.
std::string describe_attempts(const PlannedRun& planned, const ResolvedConfig& config,
                              const MemoryBudget& budget);

/// Why nothing fits and the least memory that works, in one line; then in a line each the given
/// settings that forbid what needs less, and the changes that save most (reasons_text.h).
std::string describe_refusal(const PlannedRun& planned, const ResolvedConfig& config,
                             const MemoryBudget& budget);

/// True if the first line of a refusal names the least target that works.
bool names_least_target(const plan::PlannerAnswer& answer, const ResolvedConfig& config,
                        const MemoryBudget& budget);

/// "5.20 GiB of the device, 40.10 GiB of host memory per rank": all that one rank takes.
std::string needs_text(const plan::MemoryNeeds& needs, const MemoryBudget& budget);

/// What one rank lacks for the plan of memories that no target names: those of the host of a
/// device, and of the drives.
plan::MemoryNeeds lacking_beside(const plan::MemoryNeeds& needs, const MemoryBudget& budget);

/// True if the machine cannot give a target of so many bytes.
bool is_beyond(std::int64_t target, const MemoryBudget& budget);

/// The smallest target with which the strategy of `config` accepts `smallest`, rounded up by less
/// than a hundredth.
std::int64_t least_target(const plan::PlannedStep& smallest, const ResolvedConfig& config,
                          const MemoryBudget& budget);

/// A target as one types it: "24GB", "55.5MB".
std::string target_size_text(std::int64_t bytes);

/// The --host-memory that `step` takes of a CPU, in whole MB, if the one that was given is too
/// little for it, whatever the target; 0: it suffices.
std::int64_t needed_host_limit(const plan::PlannedStep& step, const ResolvedConfig& config,
                               const MemoryBudget& budget);

/// True if the machine has the memory that `step` needs, and no limit beside the target keeps it
/// from that.
bool is_to_be_had(const plan::PlannedStep& step, const ResolvedConfig& config,
                  const MemoryBudget& budget);

}  // namespace strata::train
