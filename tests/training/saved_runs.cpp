#include "tests/training/saved_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/engine/load_checkpoint.h"
#include "train/engine/state_digest.h"
#include "train/engine/step_scalars.h"
#include "train/engine/weights.h"

namespace strata::tests {

const Recipe& recipe(std::string_view name) {
  return *std::ranges::find(kRecipes, name, &Recipe::name);
}

TrainingCase case_of(int world, int stage, plan::Home tier, const Recipe& recipe) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.model.layers = 1;
  training.model.intermediate = 8000;
  training.options = tiny_options(world, world, kSteps);
  training.options.dtype = training.options.communication_dtype = recipe.dtype;
  training.options.state_recipe = recipe.state;
  training.options.zero.stage = stage;
  training.options.offload.optimizer = tier;
  training.world = world;
  return training;
}

void on_new_weights(const TrainingCase& training, const std::function<void(train::Engine&)>& body) {
  on_engines(training, [&](train::Engine& engine) {
    train::initialize_weights(engine, 7);
    body(engine);
  });
}

void step(train::Engine& engine, std::int64_t number) {
  const int rank = engine.communicator().rank();
  engine.train_step(number, [&](std::int64_t s, int, const train::MicroBatch& batch) {
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      const std::size_t at = i + static_cast<std::size_t>(s * 31 + rank * 7);
      batch.tokens[i] = static_cast<std::int32_t>(at * 13 % 90);
      batch.targets[i] = static_cast<std::int32_t>((at + 1) * 13 % 90);
    }
  });
}

Saved save_after_steps(const TrainingCase& training, const std::string& output) {
  PosixFileSystem files;
  train::prepare_output_folder(files, output);
  Saved saved;
  saved.results.resize(static_cast<std::size_t>(training.world));
  on_new_weights(training, [&](train::Engine& engine) {
    for (int s = 0; s < kSteps; ++s) step(engine, s);
    const std::string state = train::describe_state(engine);
    const train::SaveResult result = train::save_checkpoint(
        engine, files, {.output = output, .step = kSteps, .attempt = {.run_id = "test"}});
    saved.results[static_cast<std::size_t>(engine.communicator().rank())] = result;
    EXPECT_EQ(train::describe_state(engine), state) << "saving changed it";
    const auto scalars = train::read_scalars(engine);
    step(engine, kSteps);
    const std::string continued = train::describe_state(engine);
    if (engine.communicator().rank() != 0) return;
    saved.state = state;
    saved.continued = continued;
    saved.scalars = scalars;
  });
  saved.directory = output + "/" + train::checkpoint_name(kSteps);
  return saved;
}

Loaded load(const TrainingCase& training, const Saved& saved, const std::string& save_again) {
  PosixFileSystem files;
  if (!save_again.empty()) train::prepare_output_folder(files, save_again);
  Loaded loaded;
  on_new_weights(training, [&](train::Engine& engine) {
    Loaded mine;
    mine.before = train::describe_state(engine);
    const train::CheckpointReader reader(files, saved.directory);
    mine.notes = train::load_checkpoint(engine, reader);
    train::write_scalars(engine, saved.scalars, "the test's scalars");
    mine.state = train::describe_state(engine);
    if (!save_again.empty())
      train::save_checkpoint(engine, files,
                             {.output = save_again, .step = kSteps, .attempt = {.run_id = "test"}});
    step(engine, kSteps);
    mine.continued = train::describe_state(engine);
    if (engine.communicator().rank() == 0) loaded = std::move(mine);
  });
  return loaded;
}

}  // namespace strata::tests
