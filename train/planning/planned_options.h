// Lets the planner make the settings that nobody gave, for a target of memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/seat.h"
#include "machine/machine.h"
#include "plan/planner.h"
#include "train/config/resolve.h"
#include "train/engine/build_programs.h"

namespace strata::train {

/// The memory that a run may take, and the machine it is planned for.
struct MemoryBudget {
  comm::Seat seat;
  machine::Machine machine;  ///< as one rank has it
  int local_ranks = 1;       ///< ranks of a host
  /// Bytes of a rank's device for its arena; kUnlimitedMemory where the CPU computes.
  std::int64_t device_bytes = kUnlimitedMemory;
  std::int64_t host_bytes = 0;  ///< of all ranks of a host, arenas of a CPU included; 0: no limit
  /// Bytes of the device, or of the process where the CPU computes, that are not the arena's.
  std::int64_t beside_bytes = 0;
  std::int64_t most_bytes = 0;  ///< that a target may name: all of the device or host; 0: unknown
  bool has_drive = false;       ///< state may go to the disk
  std::int64_t disk_bytes = kUnlimitedMemory;  ///< of the drives, for all ranks of a host
};

/// A setting that the planner made, as text: "zero.stage", "2".
struct PlannedOption {
  std::string name;
  std::string value;
  bool operator==(const PlannedOption&) const = default;
};

struct PlannedRun {
  plan::PlannerAnswer answer;
  std::vector<PlannedOption> changes;  ///< what differs from the settings so far, limits included
};

/// The choices that `config` leaves open: those of options that neither a flag nor the file gives.
plan::Freedom freedom_of(const ResolvedConfig& config, bool has_drive);

/// Plans the run within `budget`. The settings in `config` are what is asked for; those that were
/// given stay. Equal arguments give equal answers. Throws InvalidArgument where settings contradict
/// one another.
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

/// Writes and reads changes as lines "name value", for other ranks.
std::string to_lines(const std::vector<PlannedOption>& changes);
std::vector<PlannedOption> from_lines(const std::string& lines);

}  // namespace strata::train
