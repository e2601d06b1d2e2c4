// Real steps of ranks that are threads, and the same steps simulated with the times that were
// measured in them: what differs is the simulator's structure and not the costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "plan/foresee.h"
#include "runtime/simulator/foreseen_times.h"
#include "runtime/simulator/measured_times.h"
#include "runtime/simulator/replay.h"
#include "runtime/simulator/run_recorder.h"
#include "tests/training/rank_threads.h"
#include "tests/training/ranks.h"
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

struct StepSeconds {
  double measured = 0;
  double replayed = 0;  ///< with the times of each run
  double of_means = 0;  ///< with mean times, as any step
  double foreseen = 0;
  [[nodiscard]] double error() const { return std::abs(replayed / measured - 1); }
};

/// The mean from the end of step `first` to the end of the last one.
StepSeconds mean_step(const std::vector<runtime::ReplayedRun>& runs, std::int64_t first) {
  const auto of = [&](std::int64_t step, auto member) {
    std::int64_t ns = 0;
    for (const runtime::ReplayedRun& run : runs)
      if (run.step == step) ns = run.*member;
    return static_cast<double>(ns) * 1e-9;
  };
  const std::int64_t last = runs.back().step;
  const auto mean = [&](auto member) {
    return (of(last, member) - of(first, member)) / static_cast<double>(last - first);
  };
  return {.measured = mean(&runtime::ReplayedRun::measured_ns),
          .replayed = mean(&runtime::ReplayedRun::simulated_ns)};
}

StepSeconds compare(const TrainingCase& training, const std::vector<std::unique_ptr<OfRank>>& ranks,
                    std::int64_t first) {
  std::vector<runtime::Recording> recordings;
  for (const auto& rank : ranks) recordings.push_back(rank->recording);
  StepSeconds seconds =
      mean_step(runtime::replay(comm::data_mesh(training.world), recordings)[0], first);
  const machine::Machine machine = machine::cpu_machine(training.threads);
  const runtime::ForeseenTimes otherwise(machine);
  const auto measured = runtime::mean_times(recordings, first + 1, &otherwise);
  plan::SimulatedStep step{.ranks = {}, .times = {}, .ranks_per_host = training.world};
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    step.ranks.push_back(&ranks[r]->engine->programs());
    step.times.push_back(&measured[r]);
  }
  seconds.of_means = plan::foresee(step).step_seconds;
  seconds.foreseen = plan::foresee(*step.ranks[0], machine).step_seconds;
  return seconds;
}

/// Trains, and simulates what was recorded: of the steps after `first`.
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

/// A model whose instructions take long enough to be measured.
TrainingCase training_of(int world, int stage) {
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

/// Machines are noisy: the best of a few tries counts.
void expect_replayed(const TrainingCase& training) {
  StepSeconds best;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const StepSeconds found = replay_steps(training, 4);
    const auto percent = [&](double seconds) { return 100 * (seconds / found.measured - 1); };
    std::printf("measured %.3f ms, replayed %+.2f %%, of means %+.2f %%, foreseen %+.2f %%\n",
                1e3 * found.measured, percent(found.replayed), percent(found.of_means),
                percent(found.foreseen));
    if (attempt == 0 || found.error() < best.error()) best = found;
    if (best.error() < 0.03) break;
  }
  EXPECT_NEAR(best.replayed, best.measured, 0.15 * best.measured);
}

TEST(Replay, OneRank) { expect_replayed(training_of(1, 0)); }

TEST(Replay, TwoRanksThatGatherAndReduce) { expect_replayed(training_of(2, 3)); }

TEST(Replay, MicroStepsThatAddUp) {
  TrainingCase training = training_of(2, 2);
  training.options.accumulation = 3;
  training.options.micro_batch = 1;
  training.options.global_batch = 6;
  expect_replayed(training);
}

TEST(Replay, LateUpdatesOfRecordsOnTheDisk) {
  TrainingCase training = training_of(1, 0);
  training.options.offload.optimizer = plan::Home::disk;
  expect_replayed(training);
}

}  // namespace
}  // namespace strata::tests
