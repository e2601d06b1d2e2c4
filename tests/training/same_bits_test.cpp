// Design section 5, "Same bits": for a fixed world size and accumulation, losses and state do not
// depend on stage, recomputation, prefetch limits, bucket sizes or thread count.
#include <gtest/gtest.h>

#include "tests/training/ranks.h"

namespace strata::tests {
namespace {

TrainingCase gpt2_case(int world, int global_batch = 24, int steps = 3) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.model.embedding_dropout = training.model.residual_dropout =
      training.model.attention_dropout = 0.1;
  training.options = tiny_options(world, global_batch, steps);
  training.world = world;
  return training;
}

class SameBits : public testing::TestWithParam<int> {};

TEST_P(SameBits, AcrossStages) {
  TrainingCase training = gpt2_case(GetParam());
  const TrainingResult expected = run_training(training);
  EXPECT_LT(expected.metrics.back().loss, expected.metrics.front().loss);
  for (int stage = 1; stage <= 3; ++stage) {
    training.options.zero.stage = stage;
    expect_same(expected, run_training(training), "stage " + std::to_string(stage));
  }
}

TEST_P(SameBits, AcrossStagesWithUntiedHeadAndGroupedQueries) {
  TrainingCase training = gpt2_case(GetParam());
  training.model = tiny_llama();
  const TrainingResult expected = run_training(training);
  for (int stage = 1; stage <= 3; ++stage) {
    training.options.zero.stage = stage;
    expect_same(expected, run_training(training), "stage " + std::to_string(stage));
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, SameBits, testing::Values(1, 2, 3, 4, 8));

TEST(SameBitsOf, RanksSpreadOverHosts) {
  for (const std::vector<int>& first_ranks :
       {std::vector<int>{0, 2}, std::vector<int>{0, 1}, std::vector<int>{0, 1, 2, 3}})
    for (const DType wire : {DType::f32, DType::bf16}) {
      TrainingCase training = gpt2_case(4);
      training.options.communication_dtype = wire;
      const TrainingResult expected = run_training(training);
      training.first_ranks = first_ranks;
      for (const int stage : {0, 2, 3}) {
        training.options.zero.stage = stage;
        expect_same(expected, run_training(training),
                    std::to_string(first_ranks.size()) + " hosts, stage " + std::to_string(stage));
      }
    }
  TrainingCase training = gpt2_case(5, 25);
  const TrainingResult expected = run_training(training);
  training.first_ranks = {0, 2};
  training.options.zero.stage = 3;
  expect_same(expected, run_training(training), "2 + 3 ranks");
}

TEST(SameBitsOf, RecomputeSegments) {
  TrainingCase training = gpt2_case(2);
  training.options.zero.stage = 3;
  const TrainingResult expected = run_training(training);
  training.options.activation_checkpointing = true;
  for (int segments : {0, 1, 2}) {
    training.options.checkpoint_segments = segments;
    const TrainingResult result = run_training(training);
    expect_same(expected, result, "segments " + std::to_string(segments));
  }
  training.options.checkpoint_segments = 0;
  for (const train::ModelConfig& model : {tiny_gpt2(), tiny_llama()}) {
    TrainingCase other = training;
    other.model = model;
    const TrainingResult all = run_training(other);
    std::int64_t transient = all.memory.transient;
    for (const double ratio : {0.75, 0.5, 0.25, 0.125}) {
      other.options.checkpoint_ratio = ratio;
      const TrainingResult part = run_training(other);
      expect_same(all, part, "checkpoint ratio " + std::to_string(ratio));
      EXPECT_GE(part.memory.transient, transient) << ratio;
      transient = part.memory.transient;
    }
    EXPECT_GT(transient, all.memory.transient);
  }
  training.options.activation_checkpointing = false;
  training.options.recompute_norms = true;
  for (const train::ModelConfig& model : {tiny_gpt2(), tiny_llama()}) {
    TrainingCase other = training;
    other.model = model;
    const TrainingResult cheap = run_training(other);
    other.options.recompute_norms = false;
    const TrainingResult kept = run_training(other);
    expect_same(kept, cheap, "norms and activations alone");
    EXPECT_LT(cheap.memory.transient, kept.memory.transient);
  }
}

TEST(SameBitsOf, TransferLimits) {
  TrainingCase training = gpt2_case(2);
  training.options.zero.stage = 3;
  const TrainingResult expected = run_training(training);
  training.options.zero.prefetch_bucket_elements = 0;
  expect_same(expected, run_training(training), "no prefetch");
  training.options.zero.max_reuse_distance_elements = 0;
  training.options.zero.max_live_parameters_elements = 20'000;
  expect_same(expected, run_training(training), "no reuse, little live");
  training.options.zero.reduce_bucket_elements = 2048;
  training.options.zero.allgather_bucket_elements = 3072;
  training.options.tile_elements = 1024;
  expect_same(expected, run_training(training), "small buckets and tiles");
  training.options.zero.param_persistence_threshold_elements = 5'000;
  expect_same(expected, run_training(training), "persistent vectors");
}

TEST(SameBitsOf, ThreadCounts) {
  TrainingCase training = gpt2_case(2);
  const TrainingResult expected = run_training(training);
  for (int threads : {2, 3}) {
    training.threads = threads;
    expect_same(expected, run_training(training), "threads " + std::to_string(threads));
  }
}

TEST(SameBitsOf, AccumulationWithinReductionOrders) {
  TrainingCase training = gpt2_case(2);
  training.options.accumulation = 3;
  training.options.micro_batch = 4;
  const TrainingResult once_per_step = run_training(training);
  training.options.zero.stage = 1;
  expect_same(once_per_step, run_training(training), "stage 1");
  training.options.zero.stage = 2;
  const TrainingResult per_micro_step = run_training(training);
  training.options.zero.stage = 3;
  expect_same(per_micro_step, run_training(training), "stage 3");
  EXPECT_NEAR(once_per_step.metrics.back().loss, per_micro_step.metrics.back().loss, 1e-4);
}

TEST(SameBitsOf, SixteenBitTypes) {
  for (DType dtype : {DType::bf16, DType::f16}) {
    TrainingCase training = gpt2_case(2);
    training.options.dtype = training.options.communication_dtype = dtype;
    const TrainingResult expected = run_training(training);
    EXPECT_LT(expected.metrics.back().loss, expected.metrics.front().loss);
    for (int stage = 1; stage <= 3; ++stage) {
      training.options.zero.stage = stage;
      expect_same(expected, run_training(training),
                  std::string(name_of(dtype)) + " stage " + std::to_string(stage));
    }
  }
}

TEST(SameBitsOf, RepeatedRuns) {
  const TrainingCase training = gpt2_case(3);
  expect_same(run_training(training), run_training(training), "again");
}

TEST(SameBits, DifferWhenTheSeedDiffers) {
  TrainingCase training = gpt2_case(1);
  const TrainingResult a = run_training(training);
  training.options.seed = 2;
  EXPECT_NE(a.state, run_training(training).state);
}

}  // namespace
}  // namespace strata::tests
