// Lets the planner make the settings that nobody gave, for a target of memory.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/foresee.h"
#include "plan/planner.h"
#include "train/config/resolve.h"
#include "train/engine/build_programs.h"
#include "train/planning/memory_budget.h"

namespace strata::train {

/// A setting that the planner made, as text: "zero.stage", "2".
struct PlannedOption {
  std::string name;
  std::string value;
  bool operator==(const PlannedOption&) const = default;
};

/// A recipe of the optimizer's state that changes results (plan_allowed).
struct LossyChoice {
  std::string recipe;
  /// Holds of a choice the best step without it, if one fits (it may be too slow for the strategy),
  /// and of a refusal the smallest step with it.
  std::optional<plan::PlannedStep> other;
};

struct PlannedRun {
  plan::PlannerAnswer answer;
  std::vector<PlannedOption> changes;  ///< what differs from the settings so far, limits included
  /// Settings that differ from them in the fastest step if memory had no limit.
  std::vector<PlannedOption> unlimited_changes;
  std::optional<LossyChoice> lossy = {};  ///< what was chosen or, of a refusal, needs least
};

/// The options that make a setting; none for plan::Setting::farthest and all.
std::span<const std::string_view> options_of(plan::Setting setting);

/// True if the option makes this setting; of plan::Setting::all: any of them.
bool makes_setting(std::string_view option, plan::Setting setting);

/// True if plan_options, or one that may change results, sets the option.
bool may_be_planned(std::string_view option);

/// The choices that `config` leaves open: those of options that neither a flag nor the file gives.
plan::Freedom freedom_of(const ResolvedConfig& config, bool has_drive);

/// How targets of the run are named: in whole MB, small ones in finer steps.
plan::TargetTerms terms_of(const MemoryBudget& budget);

/// Returns what to foresee beside steps: evaluations and saves on the way, if there are some.
plan::ForecastRequest between_steps(const TrainOptions& options);

/// Plans the run within `budget`. The settings in `config` are what is asked for; those that were
/// given stay. The forecast of what is chosen also has an evaluation and a step with a snapshot, if
/// the run is to evaluate or save on its way. Equal arguments give equal answers. Throws
/// InvalidArgument where settings contradict one another.
PlannedRun plan_options(const ProgramRequest& request, const ResolvedConfig& config,
                        const MemoryBudget& budget);

/// The settings that differ between `asked` and what `chosen` does under its limits.
std::vector<PlannedOption> changes_to(const TrainOptions& asked, const plan::PlannedStep& chosen,
                                      const MemoryBudget& budget);

/// Sets the options that change, and marks the fields as planned.
void set_planned(const std::vector<PlannedOption>& changes, ResolvedConfig& config);

/// An option as the flag that sets it: "--zero 3", "--host-memory 24GB".
std::string option_text(std::string_view option, std::string_view value);

/// The changes as the flags that a user would type.
std::string flags_text(const std::vector<PlannedOption>& changes);

/// The changes as flags to type beside --target-memory: without --device-memory, which it excludes,
/// and in whose place it limits the arena.
std::string flags_beside_target(std::vector<PlannedOption> changes);

/// The flag that limits the arena where no target does: "--device-memory 23GB"; "" if none does.
/// Rounded down to MB where that is shorter and the arena, of `used` bytes, still fits: nothing
/// that the schedule took exceeded those, so that it is the same below the rounded limit.
std::string arena_limit_text(const std::vector<PlannedOption>& changes, std::int64_t used);

/// Writes and reads changes as lines "name value", for other ranks.
std::string to_lines(const std::vector<PlannedOption>& changes);
std::vector<PlannedOption> from_lines(const std::string& lines);

}  // namespace strata::train
