// Steps that must not be applied: every stage skips the same ones and changes no state in them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/training/rank_threads.h"
#include "tests/training/ranks.h"
#include "train/config/make_plan.h"
#include "train/engine/state_digest.h"
#include "train/engine/weights.h"

namespace strata::tests {
namespace {

constexpr int kWorld = 2;
constexpr int kSteps = 12;

TrainingCase case_of(DType dtype, int stage, int accumulation = 1) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.options = tiny_options(kWorld, 4 * accumulation, kSteps);
  training.options.accumulation = accumulation;
  training.options.micro_batch = 2;
  training.options.dtype = training.options.communication_dtype = dtype;
  training.options.zero.stage = stage;
  training.options.loss_scale.initial_scale_power = 24;
  training.options.loss_scale.hysteresis = 1;
  training.world = kWorld;
  return training;
}

/// Overwrites an input of chosen weight gradients with a NaN, on one rank.
class NanInjector final : public runtime::Observer {
 public:
  const runtime::Arena* arena = nullptr;
  bool armed = false;
  int hits = 0;
  void begin(const runtime::Program& program, int instruction) override {
    const runtime::Instruction& in = program.instructions[static_cast<std::size_t>(instruction)];
    if (!armed || in.operation->name != "linear_backward_weight") return;
    armed = false;
    ++hits;
    const std::uint32_t nan = 0x7fc07fc0;  // a NaN in fp32, and twice one in bf16
    std::memcpy(arena->base() + in.inputs[0].offset_bytes, &nan, sizeof nan);
  }
  void end(const runtime::Program&, int) override {}
};

/// Rank 0's view of each step: metrics, and the state's digests without the scalars.
struct History {
  std::vector<kernels::StepMetrics> metrics;
  std::vector<std::string> tensors;  ///< digests before the first step, and after each
  [[nodiscard]] std::vector<bool> skipped() const {
    std::vector<bool> result;
    for (const auto& m : metrics) result.push_back(m.overflow != 0);
    return result;
  }
};

std::string tensors_of(train::Engine& engine) {
  const std::string all = train::describe_state(engine);
  return all.substr(0, all.find("step_state"));
}

/// Trains; in step `nan_step` (-1: none) the last rank's gradient gets a NaN.
History train(const TrainingCase& training, int nan_step = -1) {
  History history;
  on_rank_threads(kWorld, [&](comm::Communicator& communicator) {
    NanInjector injector;
    train::EngineParts parts;
    parts.programs = build_rank(training, communicator);
    parts.site = std::make_unique<train::CpuSite>(communicator);
    parts.observers.push_back(&injector);
    parts.initial_loss_scale = train::initial_loss_scale(training.options);
    train::Engine engine(std::move(parts));
    injector.arena = &engine.arena();
    train::initialize_weights(engine, 1);
    const auto fill = [&](std::int64_t step, int micro_step, const train::MicroBatch& batch) {
      for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
        const std::size_t at =
            i + static_cast<std::size_t>(step * 31 + micro_step * 7 + communicator.rank());
        batch.tokens[i] = static_cast<std::int32_t>(at * 13 % 90);
        batch.targets[i] = static_cast<std::int32_t>((at + 1) * 13 % 90);
      }
    };
    History mine;
    mine.tensors.push_back(tensors_of(engine));
    for (int step = 0; step < kSteps; ++step) {
      injector.armed = step == nan_step && communicator.rank() == kWorld - 1;
      mine.metrics.push_back(engine.train_step(step, fill));
      mine.tensors.push_back(tensors_of(engine));
    }
    EXPECT_EQ(injector.hits, nan_step >= 0 && communicator.rank() == kWorld - 1 ? 1 : 0);
    if (communicator.rank() == 0) history = std::move(mine);
    communicator.close();
  });
  return history;
}

void expect_skips_change_nothing(const History& history) {
  ASSERT_EQ(history.metrics.size(), static_cast<std::size_t>(kSteps));
  std::int64_t updates = 0, skipped = 0;
  for (std::size_t step = 0; step < history.metrics.size(); ++step) {
    const kernels::StepMetrics& m = history.metrics[step];
    (m.overflow != 0 ? skipped : updates)++;
    EXPECT_EQ(m.updates, updates) << "step " << step;
    EXPECT_EQ(m.skipped, skipped) << "step " << step;
    EXPECT_EQ(history.tensors[step] == history.tensors[step + 1], m.overflow != 0)
        << "step " << step;
  }
}

void expect_equal(const History& a, const History& b, const std::string& what) {
  EXPECT_EQ(a.skipped(), b.skipped()) << what;
  EXPECT_EQ(a.tensors, b.tensors) << what;
  for (std::size_t step = 0; step < a.metrics.size(); ++step)
    EXPECT_EQ(a.metrics[step].loss_scale, b.metrics[step].loss_scale) << what << ", step " << step;
}

// Fault 20.
TEST(LossScale, SkipsTheFirstStepsAndTheSameOnesAtEveryStage) {
  const History expected = train(case_of(DType::f16, 0));
  expect_skips_change_nothing(expected);
  const auto skipped = expected.skipped();
  EXPECT_TRUE(skipped.front());  // 2^24 overflows fp16
  EXPECT_FALSE(skipped.back());  // until it has been halved enough
  const auto first_applied = std::find(skipped.begin(), skipped.end(), false);
  EXPECT_EQ(std::find(first_applied, skipped.end(), true), skipped.end()) << "an overflow later on";
  double scale = std::ldexp(1.0, 24);
  for (const kernels::StepMetrics& m : expected.metrics) {
    EXPECT_EQ(m.loss_scale, scale);
    if (m.overflow != 0) scale /= 2;
  }
  for (int stage = 1; stage <= 3; ++stage)
    expect_equal(expected, train(case_of(DType::f16, stage)), "stage " + std::to_string(stage));
}

TEST(LossScale, AnOverflowInAnyMicroStepSkipsTheWholeStep) {
  // Stages 0 and 1 reduce the sum of micro-steps, stages 2 and 3 reduce each micro-step: two orders
  // of adding, so two histories.
  History expected;
  for (int stage = 0; stage <= 3; ++stage) {
    const History history = train(case_of(DType::f16, stage, 3));
    expect_skips_change_nothing(history);
    const auto skipped = history.skipped();
    EXPECT_TRUE(skipped.front()) << "stage " << stage;
    EXPECT_NE(std::find(skipped.begin(), skipped.end(), false), skipped.end()) << "stage " << stage;
    if (stage % 2 == 0)
      expected = history;
    else
      expect_equal(expected, history, "stage " + std::to_string(stage));
  }
}

// Fault 20.
TEST(NonFiniteGradient, SkipsItsStepInBf16OnAllRanksAndNoOther) {
  constexpr int kNanStep = 4;
  std::vector<bool> only(kSteps, false);
  only[kNanStep] = true;
  History expected;
  for (int stage = 0; stage <= 3; ++stage) {
    const History history = train(case_of(DType::bf16, stage), kNanStep);
    EXPECT_EQ(history.skipped(), only) << "stage " << stage;
    expect_skips_change_nothing(history);
    EXPECT_TRUE(std::isnan(history.metrics[kNanStep].gradient_norm));
    EXPECT_TRUE(std::isfinite(history.metrics[kNanStep].loss));
    if (stage == 0)
      expected = history;
    else
      expect_equal(expected, history, "stage " + std::to_string(stage));
  }
}

/// The step must leave state to go on from; whether the run ends is decided elsewhere.
TEST(NonFiniteGradient, IsNotAppliedWhereTheRunIsToEnd) {
  constexpr int kNanStep = 4;
  std::vector<bool> only(kSteps, false);
  only[kNanStep] = true;
  TrainingCase unchecked = case_of(DType::bf16, 1);
  unchecked.options.bf16_check_overflow = false;
  for (const TrainingCase& training : {unchecked, case_of(DType::f32, 2)}) {
    const History history = train(training, kNanStep);
    EXPECT_EQ(history.skipped(), only);
    expect_skips_change_nothing(history);
    EXPECT_TRUE(std::isfinite(history.metrics.back().loss));
  }
}

}  // namespace
}  // namespace strata::tests
