// The loss is the mean over the valid targets of a whole step, however these lie on ranks,
// micro-steps and virtual ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "comm/factory.h"
#include "tests/training/ranks.h"

namespace strata::tests {
namespace {

using plan::Home;
using train::UpdateTime;

constexpr int kRows = 4;  ///< rows of a step, one per micro-batch

/// A run on sequences of 16 targets, of which 16, 3, 0 and 7 are valid.
TrainingCase masked_case(int world, int accumulation) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.options = tiny_options(1, kRows, 3);
  training.options.gradient_clipping = 0;
  training.options.accumulation = accumulation;
  training.options.micro_batch = kRows / world / accumulation;
  training.world = world;
  training.valid_targets = {16, 3, 0, 7};
  return training;
}

/// Returns the held-out loss of the first step's sequences before any update, divided once.
double mean_of_first_step(const TrainingCase& training) {
  TrainingCase one = training;
  one.world = one.options.accumulation = 1;
  one.options.micro_batch = kRows;
  one.options.offload = {};
  one.options.steps = 0;
  return run_training(one).evaluation;
}

struct Way {
  std::string name;
  int world, accumulation;
  std::function<void(train::TrainOptions&)> change = [](auto&) {};
};

std::vector<Way> ways() {
  return {
      {"1 x 4", 1, 4},
      {"2 x 2", 2, 2, [](auto& options) { options.zero.stage = 2; }},
      {"4 x 1", 4, 1, [](auto& options) { options.zero.stage = 3; }},
      {"layer by layer", 2, 2,
       [](auto& options) {
         options.zero.stage = 3;
         options.offload.layer_major = true;
       }},
      {"updates in the next step", 2, 2,
       [](auto& options) {
         options.zero.stage = 3;
         options.offload.optimizer = Home::disk;
         options.offload.parameters = Home::host;
         options.offload.updates = UpdateTime::next_step;
       }},
      {"updates after their gradients", 1, 4,
       [](auto& options) {
         options.offload.optimizer = Home::disk;
         options.offload.updates = UpdateTime::gradient;
       }},
      {"recomputed layers", 2, 2, [](auto& options) { options.activation_checkpointing = true; }},
      {"virtual ranks", 2, 1, [](auto& options) {
         options.virtual_ranks = 4;
         options.micro_batch = 1;
       }}};
}

TEST(MaskedTargets, LossesAndNormsAreThoseOfOneBatch) {
  const TrainingResult one = run_training(masked_case(1, 1));
  const double mean = mean_of_first_step(masked_case(1, 1));
  EXPECT_NEAR(one.metrics.at(0).loss, mean, 1e-6 * mean);
  for (const Way& way : ways()) {
    TrainingCase training = masked_case(way.world, way.accumulation);
    way.change(training.options);
    const TrainingResult result = run_training(training);
    ASSERT_EQ(result.metrics.size(), one.metrics.size());
    for (std::size_t step = 0; step < one.metrics.size(); ++step) {
      const kernels::StepMetrics &a = result.metrics[step], &b = one.metrics[step];
      EXPECT_NEAR(a.loss, b.loss, 1e-5 * b.loss) << way.name << ", step " << step;
      EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-4 * b.gradient_norm)
          << way.name << ", step " << step;
    }
  }
}

/// Virtual ranks give the bits of as many ranks, whichever of them has the valid targets.
TEST(MaskedTargets, WorldsDoNotMatter) {
  for (const int accumulation : {1, 2}) {
    TrainingCase plain = masked_case(kRows, 1);
    plain.options.accumulation = accumulation;
    plain.options.global_batch = kRows * accumulation;
    plain.valid_targets = {16, 3, 0, 7, 1, 0, 0, 16};
    const TrainingResult expected = run_training(plain);
    for (const int world : {1, 2, 4}) {
      TrainingCase training = plain;
      training.world = world;
      training.options.virtual_ranks = kRows;
      expect_same(expected, run_training(training), "world " + std::to_string(world));
    }
  }
}

/// Ranks add up their counts once per step, in the Program that begins it; evaluation adds its own.
TEST(MaskedTargets, RanksAddUpOncePerStep) {
  const auto communicators = comm::make_thread_communicators(2);
  const TrainingCase training = masked_case(2, 2);
  for (const auto& [key, program] : build_rank(training, *communicators[0]).programs) {
    const bool adds = key.kind == compile::ProgramKind::train && key.micro_step.begins_step;
    EXPECT_EQ(std::ranges::count_if(program.instructions,
                                    [](const runtime::Instruction& in) {
                                      return in.label == "add up targets of the step";
                                    }),
              adds ? 1 : 0)
        << program.name;
  }
}

TEST(MaskedTargets, AStepWithoutAnyHasNoLossAndNoGradient) {
  for (const Way& way : ways()) {
    TrainingCase training = masked_case(way.world, way.accumulation);
    training.valid_targets = {0};
    way.change(training.options);
    for (const kernels::StepMetrics& metrics : run_training(training).metrics) {
      EXPECT_EQ(metrics.loss, 0) << way.name;
      EXPECT_EQ(metrics.gradient_norm, 0) << way.name;
    }
  }
}

}  // namespace
}  // namespace strata::tests
