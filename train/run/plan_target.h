// Plans a request for the target of --target-memory, for a machine that need not be here.
#pragma once

#include <string>
#include <vector>

#include "train/planning/planned_options.h"
#include "train/run/planning_site.h"

namespace strata::train {

/// The memory that the target leaves for the arenas of the machine of `request` (budget_for).
/// Throws ConfigError for a target that the machine cannot give.
MemoryBudget target_budget(const RunRequest& request, const PlanningSite& site);

/// A planned run, with its options.
struct PlannedTraining {
  PlannedRun planned;
  TrainOptions options;       ///< with what was planned; as they were if there is no plan
  std::string text;           ///< what `plan` prints: the settings, memory and time, or the refusal
  std::int64_t device_bytes;  ///< of each device in all, or of each process; 0: no plan
};

/// Plans a run of `model` with `ranks` ranks on `hardware` (machine::load_hardware, or
/// find_hardware), which need not be here. options.target says how much memory it may take, with
/// which strategy and tiers ("" plans for all that there is); options.micro_batch * accumulation is
/// the batch of a rank. The planner may set batch division, ZeRO stage, recomputation and offload,
/// but for the options named in `given` ("zero.stage": names of option_fields). Equal arguments
/// give equal answers. Throws InvalidArgument for settings that contradict one another, ConfigError
/// for a target that the machine cannot give.
PlannedTraining plan_run(const ModelConfig& model, const TrainOptions& options,
                         const machine::Machine& hardware, int ranks,
                         const std::vector<std::string>& given = {});

/// The same for `budget` in place of options.target, with a rank for each device of one host and
/// nothing that is given.
PlannedTraining plan_run(const ModelConfig& model, TrainOptions options,
                         const TargetOptions& budget, const machine::Machine& hardware);

}  // namespace strata::train
