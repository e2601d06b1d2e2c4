// Says for people what single settings save and cost: those that were planned, those that a
// refused run could change, and those that forbid what needs less.
#pragma once

#include <string>
#include <vector>

#include "train/planning/planned_options.h"

namespace strata::train {

/// The flags of the planned changes that make this setting: "--micro-batch 2 --accumulation 8".
std::string planned_flags(const PlannedRun& planned, plan::Setting setting);

/// The flags that turn what `asked` does into `choices`. DIR stands for a folder on a drive.
std::string flags_to(const TrainOptions& asked, const plan::Choices& choices);

/// True if `choices` use a drive and no --nvme-path names a folder on it.
bool lacks_folder(const TrainOptions& options, const plan::Choices& choices);

/// "--allow-offload host"; "" if state may go anywhere.
std::string allowed_homes_flag(plan::Home farthest);

/// The flags or keys that were given for this setting, and keep the planner from changing it:
/// "--zero 1". "" if state cannot go to a drive only because no folder on one is named.
std::string given_flags(const ResolvedConfig& config, const MemoryBudget& budget,
                        plan::Setting setting);

/// "; \"auto\" stays --zero 0": what a file leaves open to the planner, which changed nothing of
/// it;
/// "" if there is nothing such.
std::string autos_text(const ResolvedConfig& config);

/// "5.20 GiB less of the device, 5.20 GiB more of host memory, steps 3.1 % (12 ms) slower".
std::string price_text(const plan::PricedChange& change, const machine::Machine& machine);

/// Lines that each begin with a line break: the settings that were made, and what the step would
/// need and take without each of them, as guessed or as compiled. "" if nothing was changed.
std::string reasons_text(const PlannedRun& planned, const MemoryBudget& budget);

/// Alike: the first five of PlannerAnswer::changes, or of such, with their flags.
std::string changes_text(const std::vector<plan::PricedChange>& changes, const TrainOptions& asked,
                         const machine::Machine& machine);

/// PlannerAnswer::forbidden without those whose target is not smaller by a MB than the least
/// that works already.
std::vector<plan::PricedChange> forbidden_targets(const PlannedRun& planned,
                                                  const ResolvedConfig& config,
                                                  const MemoryBudget& budget);

/// Alike: the given settings that forbid what needs less, and what freeing each would reach.
std::string forbidden_text(const PlannedRun& planned, const ResolvedConfig& config,
                           const MemoryBudget& budget);

}  // namespace strata::train
