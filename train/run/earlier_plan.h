// Records in checkpoints which settings were planned for a target of memory, so that a run that
// goes on has them again, though free memory or measured times would now lead to others.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/planning/planned_options.h"
#include "train/run/restart.h"

namespace strata::train {

/// The manifest's facts that hold TargetPlan::asked and TargetPlan::planned.
inline constexpr const char* kAskedFact = "target_asked";
inline constexpr const char* kPlannedFact = "target_planned";

/// The settings that a target of memory gave a run: lines "name value". Empty: there is no target.
struct TargetPlan {
  std::string asked;    ///< target, batch, and settings that the planner had to leave
  std::string planned;  ///< those that it made
};

/// Lists what the planner is asked for: equal texts ask for the same. `config`: before planning.
std::string asked_of_planner(const ResolvedConfig& config, int ranks);

/// A checkpoint's plan.
struct EarlierPlan {
  std::string directory;  ///< of the checkpoint
  TargetPlan plan;
};

/// Reads the plan of the checkpoint that a run with these options will go on from. Nullopt: there
/// is none, it has no plan, or it cannot be read, which is for find_beginning to say. Not
/// collective; reads only.
std::optional<EarlierPlan> find_earlier_plan(const TrainOptions& options,
                                             const std::optional<Restart>& restart = {});

/// The settings of TargetPlan::planned; nullopt if this build has no such setting or value.
std::optional<std::vector<PlannedOption>> read_planned(const std::string& planned);

/// Names what differs between two texts of a TargetPlan: "micro_batch 4 there, open here", where
/// `absent` is "open", the word for what only one of them has.
std::string differences(const std::string& there, const std::string& here, std::string_view absent);

/// Says that a run has other planned settings than the checkpoint that it goes on from; "" if it
/// has the same, or one of them has none. `why`: if the settings asked are the same.
std::string note_on_plan(const TargetPlan& there, const TargetPlan& here, const std::string& why);

}  // namespace strata::train
