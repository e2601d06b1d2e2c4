#include "tests/training/replayed_steps.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "plan/foresee.h"
#include "runtime/simulator/foreseen_times.h"
#include "runtime/simulator/measured_times.h"
#include "runtime/simulator/replay.h"
#include "runtime/simulator/run_recorder.h"
#include "tests/training/rank_threads.h"
#include "train/engine/weights.h"

namespace strata::tests {
namespace {

/// The things that one rank of a run leaves: recorded runs, and the engine that owns their
/// Programs.
struct OfRank {
  RankDevice device;
  runtime::RunRecorder recorder{1000, 200'000};
  std::unique_ptr<train::Engine> engine;
  runtime::Recording recording;
};

/// Returns the mean from the end of step `first` to the end of the last one.
double mean_seconds(const std::vector<runtime::ReplayedRun>& runs, std::int64_t first,
                    std::int64_t runtime::ReplayedRun::*end_ns) {
  const auto end_of = [&](std::int64_t step) {
    std::int64_t ns = 0;
    for (const runtime::ReplayedRun& run : runs)
      if (run.step == step) ns = run.*end_ns;
    return static_cast<double>(ns) * 1e-9;
  };
  const std::int64_t last = runs.back().step;
  return (end_of(last) - end_of(first)) / static_cast<double>(last - first);
}

StepSeconds compare(const TrainingCase& training, const std::vector<std::unique_ptr<OfRank>>& ranks,
                    std::int64_t first) {
  using runtime::ReplayedRun;
  std::vector<runtime::Recording> recordings;
  for (const auto& rank : ranks) recordings.push_back(rank->recording);
  const comm::Mesh mesh = comm::data_mesh(training.world);
  const auto replayed = runtime::replay(mesh, recordings)[0];
  const auto running = runtime::replay(mesh, recordings, runtime::CountedFrom::begin)[0];
  const machine::Machine machine = machine::cpu_machine(training.threads);
  const runtime::ForeseenTimes otherwise(machine);
  const auto measured = runtime::mean_times(recordings, first + 1, &otherwise);
  plan::SimulatedStep step{.ranks = {}, .times = {}, .ranks_per_host = training.world};
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    step.ranks.push_back(&ranks[r]->engine->programs());
    step.times.push_back(&measured[r]);
  }
  return {.measured = mean_seconds(replayed, first, &ReplayedRun::measured_ns),
          .replayed = mean_seconds(replayed, first, &ReplayedRun::simulated_ns),
          .running = mean_seconds(running, first, &ReplayedRun::simulated_ns),
          .of_means = plan::foresee(step).step_seconds,
          .foreseen = plan::foresee(*step.ranks[0], machine).step_seconds};
}

}  // namespace

StepSeconds replay_steps(const TrainingCase& training, std::int64_t first) {
  std::vector<std::unique_ptr<OfRank>> ranks(static_cast<std::size_t>(training.world));
  StepSeconds seconds;
  on_rank_threads(training.world, [&](comm::Communicator& communicator) {
    auto& mine = ranks[static_cast<std::size_t>(communicator.rank())];
    mine = std::make_unique<OfRank>();
    train::EngineParts parts = engine_parts(training, communicator, mine->device);
    parts.observers = {&mine->recorder};
    mine->engine = std::make_unique<train::Engine>(std::move(parts));
    train::Engine& engine = *mine->engine;
    train::initialize_weights(engine, training.options.seed);
    const auto fill = [&](std::int64_t step, int, const train::MicroBatch& batch) {
      for (std::size_t i = 0; i < batch.tokens.size(); ++i)
        batch.tokens[i] = batch.targets[i] = static_cast<std::int32_t>((i * 7 + 3) % 97);
      std::ranges::fill(batch.samples, step);
    };
    for (std::int64_t step = 0; step < training.options.steps; ++step)
      engine.start_step(step, fill);
    engine.settle();
    mine->recording = mine->recorder.runs();
    engine.barrier();
    if (communicator.rank() == 0) seconds = compare(training, ranks, first);
    engine.barrier();
    engine.drain();
    mine->engine.reset();
    communicator.close();
  });
  return seconds;
}

TrainingCase measurable_training(int world, int stage) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.model.layers = 4;
  training.model.hidden = 128;
  training.model.head_size = 32;
  training.model.intermediate = 512;
  training.model.context = 128;
  training.world = world;
  training.options = tiny_options(world, 4 * world, 14);
  training.options.sequence_length = 128;
  training.options.zero.stage = stage;
  return training;
}

}  // namespace strata::tests
