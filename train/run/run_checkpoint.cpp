#include "train/run/run_checkpoint.h"

#include <string>
#include <utility>
#include <vector>

#include "train/checkpoint/checkpoint_run.h"
#include "train/engine/step_scalars.h"
#include "train/files/model_files.h"
#include "train/models/hf_config.h"
#include "train/run/earlier_defaults.h"
#include "train/run/earlier_plan.h"
#include "train/run/earlier_settings.h"
#include "train/run/plan_facts.h"
#include "train/run/resume_terms.h"

namespace strata::train {
namespace {

TrainerState trainer_state(const RunParts& run) {
  const TrainOptions& options = run.options;
  const RunPosition& position = run.position;
  TrainerState state;
  state.step = position.steps_done;
  state.consumed_samples = position.consumed_samples +
                           (position.steps_done - position.first_step) * options.global_batch;
  state.seed = options.seed;
  state.global_batch = options.global_batch;
  state.sequence_length = options.sequence_length;
  state.shuffle = options.shuffle;
  state.data_digest = run.data_digest;
  state.data_tokens = run.corpus.training->size();
  state.optimizer = option_text(options, "optimizer.type");
  state.state_recipe = state_recipe_text(run.engine->programs().settings.plan, options);
  state.dtype = name_of(options.dtype);
  state.scalars = read_scalars(*run.engine);
  return state;
}

/// The defaults for options that were not given: those of the run's first checkpoint, if known.
std::string defaults_of(const RunParts& run) {
  if (run.resume_point && run.resume_point->state.data_digest != kUnknownData)
    return run.resume_point->defaults.empty() ? kNewModelDefaults : run.resume_point->defaults;
  return ModelFiles::has_weights(run.options.model) ? kStoredModelDefaults : kNewModelDefaults;
}

/// Facts about the run for people and tools; loading does not need them.
Facts facts(const RunParts& run) {
  const TrainOptions& options = run.options;
  const runtime::Plan& plan = run.engine->programs().settings.plan;
  const int world = run.communicator->size();
  Facts facts{{"world", std::to_string(world)},
              {kLeavesFact, std::to_string(leaves(options, world))},
              {kMicroBatchFact, std::to_string(options.micro_batch)},
              {"zero_stage", zero_stage_text(plan, options)},
              {"dtype", std::string(name_of(options.dtype))},
              {"state_recipe", state_recipe_text(plan, options)},
              {kRunIdFact, run.request.context.run_id},
              {kAttemptFact, std::to_string(run.request.context.attempt)},
              {"device", run.device->description()},
              {"data_digest", run.data_digest},
              {kDefaultsFact, defaults_of(run)},
              {kSettingsFact, training_settings(options)}};
  if (!run.target_plan.asked.empty()) {
    facts.emplace_back(kAskedFact, run.target_plan.asked);
    facts.emplace_back(kPlannedFact, run.target_plan.planned);
  }
  if (std::string trained = trained_text(plan); !trained.empty())
    facts.emplace_back("trained", std::move(trained));
  return facts;
}

/// Saves; returns true if there now is a checkpoint of this step.
bool save_as(RunParts& run, bool must, SaveOf of) {
  if (!run.saver->saves()) return false;
  if (run.saver->last_step() == run.position.steps_done) return true;
  run.listeners.tell(Entered{Phase::saving});
  std::optional<Saved> saved;
  run.transfers.beside_programs(*run.engine, [&] {
    saved = run.saver->save(*run.engine, save_contents(run), must, of);
    report_saved(run, saved);
  });
  return saved.has_value();
}

}  // namespace

SaveContents save_contents(const RunParts& run) {
  const TrainOptions& options = run.options;
  SaveContents contents{trainer_state(run), facts(run), {}};
  std::vector<WholeFile>& files = contents.whole_files;
  for (const auto& [name, text] : run.device->files()) files.push_back({name, text});
  files.push_back(
      {"config.json", to_hf_config_json(run.request.model, run.model_config, options.dtype)});
  for (const auto& [name, text] : run.beside_weights.files) files.push_back({name, text});
  return contents;
}

void save(RunParts& run) { (void)save_as(run, false, SaveOf::any_state); }
void save_last(RunParts& run) { (void)save_as(run, true, SaveOf::any_state); }
bool save_finite(RunParts& run) { return save_as(run, true, SaveOf::finite_state); }

void report_saved(RunParts& run, const std::optional<Saved>& saved) {
  if (saved) run.tell(*saved);
}

}  // namespace strata::train
