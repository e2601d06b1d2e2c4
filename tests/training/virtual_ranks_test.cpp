// Elastic sameness (docs/adr/0012): with V virtual ranks, every world gives the bits of a world of
// V ranks without the option.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "comm/factory.h"
#include "core/error.h"
#include "runtime/graph/state_names.h"
#include "tests/training/ranks.h"

namespace strata::tests {
namespace {

using plan::Home;
using train::UpdateTime;

constexpr int kVirtualRanks = 4;

/// A world of `leaves` ranks, one sequence each per micro-step. Dropout is on: its random numbers
/// must belong to samples, not to ranks.
TrainingCase plain_case(int leaves, int stage, int accumulation = 1) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.model.layers = 2;
  training.model.embedding_dropout = training.model.residual_dropout =
      training.model.attention_dropout = 0.1;
  training.options = tiny_options(leaves, leaves * accumulation, 3);
  training.options.accumulation = accumulation;
  training.options.micro_batch = 1;
  training.options.zero.stage = stage;
  training.world = leaves;
  return training;
}

/// Returns the same run on `world` ranks.
TrainingCase on_ranks(TrainingCase training, int world) {
  training.options.virtual_ranks = training.world;
  training.world = world;
  return training;
}

std::string name_of(const TrainingCase& training) {
  return "world " + std::to_string(training.world) + ", stage " +
         std::to_string(training.options.zero.stage) + ", accumulation " +
         std::to_string(training.options.accumulation);
}

/// Expects equal bits of every world that divides the plain one.
void expect_worlds_do_not_matter(const TrainingCase& plain, const std::string& what = "") {
  const TrainingResult expected = run_training(plain);
  for (int world = plain.world; world > 0; world /= 2) {
    const TrainingCase training = on_ranks(plain, world);
    expect_same(expected, run_training(training), name_of(training) + " " + what);
  }
}

class VirtualRanks : public testing::TestWithParam<int> {};

TEST_P(VirtualRanks, WorldsDoNotMatter) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const int accumulation : {1, 2}) {
      TrainingCase plain = plain_case(kVirtualRanks, GetParam(), accumulation);
      plain.options.dtype = plain.options.communication_dtype = dtype;
      expect_worlds_do_not_matter(plain, std::string(strata::name_of(dtype)));
    }
}

TEST_P(VirtualRanks, SumsMayBeRounded) {
  TrainingCase plain = plain_case(kVirtualRanks, GetParam(), 3);
  plain.options.dtype = plain.options.accumulation_dtype = DType::bf16;
  plain.options.communication_dtype = DType::f16;
  plain.options.zero.reduce_bucket_elements = 3072;
  plain.options.zero.allgather_bucket_elements = 2048;
  expect_worlds_do_not_matter(plain);
  plain.options.dtype = plain.options.accumulation_dtype = DType::f32;
  expect_worlds_do_not_matter(plain, "fp32 to fp16");
}

TEST_P(VirtualRanks, HomesAndRecomputationDoNotMatter) {
  TrainingCase plain = plain_case(kVirtualRanks, GetParam());
  plain.options.tile_elements = 4096;
  const TrainingResult expected = run_training(plain);
  for (const int world : {1, 2})
    for (const Home optimizer : {Home::host, Home::disk})
      for (const Home parameters : {Home::device, optimizer})
        for (const UpdateTime updates : {UpdateTime::step_end, UpdateTime::next_step}) {
          TrainingCase training = on_ranks(plain, world);
          const bool parts = world > 1 && GetParam() % 3 != 0;
          if (parameters == Home::disk && parts) continue;
          training.options.activation_checkpointing = updates == UpdateTime::next_step;
          training.options.offload.optimizer = optimizer;
          training.options.offload.parameters = parameters;
          training.options.offload.updates = updates;
          expect_same(expected, run_training(training), name_of(training));
        }
}

/// Partial sums wait on the disk, too, beside the accumulators or in them.
TEST_P(VirtualRanks, GradientsMayWaitOnTheDisk) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const int accumulation : {1, 2}) {
      TrainingCase plain = plain_case(kVirtualRanks, GetParam(), accumulation);
      plain.options.dtype = plain.options.communication_dtype = dtype;
      plain.options.tile_elements = 4096;
      const TrainingResult expected = run_training(plain);
      plain.options.offload.optimizer = Home::disk;
      plain.change_plan = put_gradients_on_disk;
      for (const int world : {1, 2}) {
        const TrainingCase training = on_ranks(plain, world);
        expect_same(expected, run_training(training), name_of(training));
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Stages, VirtualRanks, testing::Values(0, 1, 2, 3));

/// Eight leaves on one rank make three levels of partial sums.
TEST(VirtualRanksOf, EightOnOne) {
  for (const int stage : {0, 3}) {
    TrainingCase plain = plain_case(8, stage, 2);
    plain.options.steps = 2;
    expect_worlds_do_not_matter(plain);
  }
}

TEST(VirtualRanksOf, UntiedHeadAndUpdatesBehindTheirGradients) {
  TrainingCase plain = plain_case(kVirtualRanks, 2, 2);
  plain.model = tiny_llama();
  plain.options.gradient_clipping = 0;
  plain.options.bf16_check_overflow = false;
  const TrainingResult expected = run_training(plain);
  plain.options.offload.updates = UpdateTime::gradient;
  for (const int world : {1, 2})
    expect_same(expected, run_training(on_ranks(plain, world)), "world " + std::to_string(world));
}

TEST(VirtualRanksOf, SkippedSteps) {
  TrainingCase plain = plain_case(kVirtualRanks, 2);
  skip_first_steps(plain.options);
  const TrainingResult expected = run_training(plain);
  EXPECT_GT(expected.metrics.back().skipped, 0);
  EXPECT_GT(expected.metrics.back().updates, 0);
  for (const int world : {1, 2})
    expect_same(expected, run_training(on_ranks(plain, world)), "world " + std::to_string(world));
}

/// Micro-steps without virtual ranks have other bits, which is why the option exists.
TEST(VirtualRanksOf, AccumulationIsNotTheSame) {
  TrainingCase training = plain_case(kVirtualRanks, 0);
  const TrainingResult expected = run_training(training);
  training.world = 1;
  training.options.accumulation = kVirtualRanks;
  EXPECT_NE(run_training(training).state, expected.state);
}

/// Partial sums are planned: one piece of this rank's shard per level at every stage, the largest
/// in the accumulator while that holds nothing else; none if each rank is one virtual rank.
TEST(VirtualRanksOf, PartialSumsAreInTheLayout) {
  for (const int stage : {0, 3})
    for (const auto& [world, accumulation, levels] :
         {std::array{1, 1, 1}, {2, 1, 0}, {4, 1, 0}, {1, 2, 2}, {2, 2, 1}, {4, 2, 0}}) {
      const TrainingCase training = on_ranks(plain_case(kVirtualRanks, stage, accumulation), world);
      const auto communicators = comm::make_thread_communicators(world);
      const compile::StepPrograms set = build_rank(training, *communicators[0]);
      std::int64_t found = 0, expected = 0;
      for (const runtime::ParameterUnit& unit : set.units) {
        const zero::OwnedUnit owned = zero::owned_unit(unit, {}, set.settings);
        expected += levels * (owned.owned_end - owned.owned_begin);
      }
      for (const runtime::PersistentValue& value : set.persistent.values())
        if (value.name.starts_with("partial_sum")) found += value.type.shape.elements();
      EXPECT_EQ(found, expected) << name_of(training);
    }
}

/// There is one Program per number of partial sums that a leaf joins.
TEST(VirtualRanksOf, ProgramsAreFew) {
  const auto communicators = comm::make_thread_communicators(1);
  const auto count = [&](int stage, int accumulation) {
    const TrainingCase training = on_ranks(plain_case(16, stage, accumulation), 1);
    const compile::StepPrograms set = build_rank(training, *communicators[0]);
    return std::ranges::count_if(set.programs, [](const auto& entry) {
      return entry.first.kind == compile::ProgramKind::train;
    });
  };
  EXPECT_EQ(count(0, 1), 6u);  // first leaf, leaves that join 0 to 3, last leaf
  EXPECT_EQ(count(2, 1), 6u);
  EXPECT_EQ(count(0, 3), 8u);
  EXPECT_EQ(count(2, 3), 8u);
}

TEST(VirtualRanksOf, OtherPlansAreRefused) {
  const auto communicators = comm::make_thread_communicators(2);
  const auto refusal = [&](int virtual_ranks, bool by_layer) {
    TrainingCase training = plain_case(2, 1, 2);
    training.options.virtual_ranks = virtual_ranks;
    training.options.global_batch = 2 * virtual_ranks;
    training.options.offload.layer_major = by_layer;
    try {
      build_rank(training, *communicators[0]);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal(4, false), "");
  EXPECT_EQ(refusal(2, true), "");
  EXPECT_NE(refusal(6, false).find("expected a power of two: 4 or 8"), std::string::npos);
  EXPECT_NE(refusal(1, false).find("found 1 with 2 ranks, expected 1 rank"), std::string::npos);
  EXPECT_NE(refusal(4, true).find("layer by layer"), std::string::npos);
}

}  // namespace
}  // namespace strata::tests
