// Real steps, and the same steps simulated with the times that were measured in them.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/training/replayed_steps.h"

namespace strata::tests {
namespace {

/// A busy machine makes steps longer, and their replays as much.
void expect_replayed(const TrainingCase& training) {
  constexpr double kWorst = 0.03;
  const StepSeconds found = replay_steps(training, 4);
  const auto percent = [&](double seconds) { return 100 * (seconds / found.measured - 1); };
  std::printf(
      "measured %.3f ms, replayed %+.2f %%, running %+.2f %%, of means %+.2f %%, foreseen "
      "%+.2f %%\n",
      1e3 * found.measured, percent(found.replayed), percent(found.running),
      percent(found.of_means), percent(found.foreseen));
  EXPECT_NEAR(found.replayed, found.measured, kWorst * found.measured);
  // Waking threads and starting runs takes time, and nothing else is missing.
  EXPECT_LE(found.running, found.measured * (1 + kWorst));
}

TEST(Replay, OneRank) { expect_replayed(measurable_training(1, 0)); }

TEST(Replay, TwoRanksThatGatherAndReduce) { expect_replayed(measurable_training(2, 3)); }

TEST(Replay, MicroStepsThatAddUp) {
  TrainingCase training = measurable_training(2, 2);
  training.options.accumulation = 3;
  training.options.micro_batch = 1;
  training.options.global_batch = 6;
  expect_replayed(training);
}

TEST(Replay, LateUpdatesOfRecordsOnTheDisk) {
  TrainingCase training = measurable_training(1, 0);
  training.options.offload.optimizer = plan::Home::disk;
  expect_replayed(training);
}

TEST(Replay, RanksWhoseParametersAreInHostMemory) {
  TrainingCase training = measurable_training(2, 3);
  training.options.offload.optimizer = plan::Home::host;
  training.options.offload.parameters = plan::Home::host;
  expect_replayed(training);
}

}  // namespace
}  // namespace strata::tests
