// The place of state and the time of updates change no bit: every target with every stage, with and
// without recomputation, micro-steps, half precision and skipped steps.
#include <gtest/gtest.h>

#include <cmath>

#include "comm/single.h"
#include "core/error.h"
#include "tests/training/ranks.h"

namespace strata::tests {
namespace {

using plan::Home;
using train::UpdateTime;

TrainingCase small_case(int world, int stage, bool llama = false) {
  TrainingCase training;
  training.model = llama ? tiny_llama() : tiny_gpt2();
  training.model.layers = 2;
  training.options = tiny_options(world, 8, 3);
  training.options.zero.stage = stage;
  training.options.tile_elements = 4096;
  training.world = world;
  return training;
}

std::string name_of(Home target) {
  return target == Home::device ? "device" : target == Home::host ? "host" : "disk";
}

constexpr Home kTargets[] = {Home::device, Home::host, Home::disk};

std::string name_of(UpdateTime updates) {
  return updates == UpdateTime::next_step  ? "late"
         : updates == UpdateTime::gradient ? "after gradients"
                                           : "at the end";
}

using StartRules = std::initializer_list<UpdateTime>;

/// Expects the bits of `expected` for every combination of homes with each of `rules`.
void expect_homes_do_not_matter(TrainingCase training, const TrainingResult& expected,
                                StartRules rules = {UpdateTime::step_end, UpdateTime::next_step}) {
  for (const Home optimizer : kTargets)
    for (const Home parameters : kTargets)
      for (const UpdateTime updates : rules) {
        if (optimizer == Home::device && updates == UpdateTime::next_step) continue;
        const bool parts = training.world > 1 && training.options.zero.stage % 3 != 0;
        if (parameters == Home::disk && parts) continue;
        training.options.offload.optimizer = optimizer;
        training.options.offload.parameters = parameters;
        training.options.offload.updates = updates;
        expect_same(expected, run_training(training),
                    "optimizer " + name_of(optimizer) + ", parameters " + name_of(parameters) +
                        ", " + name_of(updates) + ", stage " +
                        std::to_string(training.options.zero.stage));
      }
}

class OffloadSameBits : public testing::TestWithParam<int> {};

TEST_P(OffloadSameBits, HomesOfState) {
  const int world = GetParam();
  const TrainingResult expected = run_training(small_case(world, 0));
  for (const int stage : world == 1 ? std::vector<int>{0} : std::vector<int>{0, 1, 2, 3})
    expect_homes_do_not_matter(small_case(world, stage), expected);
}

/// Turns off what needs the whole gradient, so that an update may run right after its own gradient.
TrainingCase without_clipping(TrainingCase training) {
  training.options.gradient_clipping = 0;
  training.options.bf16_check_overflow = false;
  training.options.scheduler.type = kernels::ScheduleKind::cosine;
  training.options.scheduler.warmup_num_steps = 1;
  training.options.scheduler.total_num_steps = 4;
  return training;
}

/// Expects the bits of `expected` from `training` with gradients on the disk, for every rule and
/// every home of the rest of the state.
void expect_gradients_may_wait_on_the_disk(TrainingCase training, const TrainingResult& expected,
                                           StartRules rules) {
  training.change_plan = put_gradients_on_disk;
  for (const Home optimizer : {Home::device, Home::disk})
    for (const UpdateTime updates : rules) {
      if (optimizer == Home::device && updates == UpdateTime::next_step) continue;
      const bool parts = training.world > 1 && training.options.zero.stage % 3 != 0;
      training.options.offload.optimizer = optimizer;
      training.options.offload.parameters = parts ? Home::device : optimizer;
      training.options.offload.updates = updates;
      const TrainingResult result = run_training(training);
      expect_same(expected, result,
                  "gradients on the disk, optimizer " + name_of(optimizer) + ", " +
                      name_of(updates) + ", stage " + std::to_string(training.options.zero.stage));
      EXPECT_GT(result.memory.disk.gradients, 0);
      EXPECT_EQ(result.memory.gradients + result.memory.pinned.gradients, 0);
    }
}

constexpr auto kAfterTheControl = {UpdateTime::step_end, UpdateTime::next_step};

TEST_P(OffloadSameBits, GradientsOnTheDisk) {
  const int world = GetParam();
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const int stage : world == 1 ? std::vector<int>{0} : std::vector<int>{0, 1, 2, 3}) {
      TrainingCase training = small_case(world, 0, dtype == DType::bf16);
      training.options.dtype = training.options.communication_dtype = dtype;
      const TrainingResult expected = run_training(training);
      training.options.zero.stage = stage;
      expect_gradients_may_wait_on_the_disk(training, expected, kAfterTheControl);
    }
}

/// Sums up gradients of bf16 in `kept`.
TrainingCase three_micro_steps(int world, int stage, DType kept) {
  TrainingCase training = small_case(world, stage);
  training.options.dtype = training.options.communication_dtype = DType::bf16;
  training.options.accumulation_dtype = kept;
  training.options.accumulation = 3;
  training.options.micro_batch = 1;
  training.options.global_batch = 3 * world;
  return training;
}

/// Gradient sums on the disk are read and written in each micro-step, in fp32 and in bf16.
TEST_P(OffloadSameBits, GradientsOnTheDiskOfSeveralMicroSteps) {
  const int world = GetParam();
  for (const DType kept : {DType::f32, DType::bf16})
    for (const int stage : world == 1 ? std::vector<int>{0} : std::vector<int>{0, 1, 2, 3}) {
      TrainingCase training = three_micro_steps(world, stage, kept);
      const TrainingResult expected = run_training(training);
      expect_gradients_may_wait_on_the_disk(training, expected, kAfterTheControl);
      if (stage >= 2 || kept != DType::f32) continue;  // layer-major reduces once per step
      training.options.offload.layer_major = true;
      expect_gradients_may_wait_on_the_disk(training, expected, kAfterTheControl);
    }
}

/// Sums in host memory come to the device in each micro-step, and go back.
TEST_P(OffloadSameBits, SumsAwayBetweenMicroSteps) {
  const int world = GetParam();
  for (const DType kept : {DType::f32, DType::bf16})
    for (const int stage : world == 1 ? std::vector<int>{0} : std::vector<int>{0, 1, 2, 3}) {
      TrainingCase training = three_micro_steps(world, stage, kept);
      const TrainingResult expected = run_training(training);
      training.options.offload.optimizer = Home::host;
      EXPECT_GT(run_training(training).memory.gradients, 0) << "they stay, unless asked";
      training.options.offload.gradients = true;
      for (const double ratio : {1.0, 0.5}) {
        training.options.offload.optimizer_ratio = ratio;
        const TrainingResult result = run_training(training);
        expect_same(
            expected, result,
            "sums away, ratio " + std::to_string(ratio) + ", stage " + std::to_string(stage));
        EXPECT_EQ(result.memory.gradients, 0);
        EXPECT_GT(result.memory.pinned.gradients, 0);
      }
    }
}

/// The first steps are skipped; then some tiles are updated on the device, some on the host.
TEST(OffloadSameBitsOf, GradientsOnTheDiskOfSkippedSteps) {
  TrainingCase training = small_case(2, 3);
  skip_first_steps(training.options);
  const TrainingResult expected = run_training(training);
  EXPECT_GT(expected.metrics.back().skipped, 0);
  expect_gradients_may_wait_on_the_disk(training, expected, kAfterTheControl);
  training = small_case(2, 1);
  training.options.tile_elements = 1024;
  training.options.offload.optimizer_ratio = 0.5;
  expect_gradients_may_wait_on_the_disk(training, run_training(training), kAfterTheControl);
}

TEST_P(OffloadSameBits, GradientsOnTheDiskBehindWhichUpdatesRun) {
  const int world = GetParam();
  const TrainingResult expected = run_training(without_clipping(small_case(world, 0)));
  for (const int stage : world == 1 ? std::vector<int>{0} : std::vector<int>{0, 1, 2, 3})
    expect_gradients_may_wait_on_the_disk(without_clipping(small_case(world, stage)), expected,
                                          {UpdateTime::gradient});
}

TEST_P(OffloadSameBits, MasterCopiesOfHalfPrecision) {
  TrainingCase training = small_case(GetParam(), 0, true);
  training.options.dtype = training.options.communication_dtype = DType::bf16;
  const TrainingResult expected = run_training(training);
  training.options.zero.stage = GetParam() == 1 ? 0 : 3;
  expect_homes_do_not_matter(training, expected);
}

TEST_P(OffloadSameBits, UpdatesBehindTheirGradients) {
  const int world = GetParam();
  const TrainingResult expected = run_training(without_clipping(small_case(world, 0)));
  EXPECT_NE(expected.metrics[1].learning_rate, expected.metrics[2].learning_rate);
  for (const int stage : world == 1 ? std::vector<int>{0} : std::vector<int>{0, 1, 2, 3})
    for (const bool recompute : {false, true}) {
      TrainingCase training = without_clipping(small_case(world, stage));
      training.options.activation_checkpointing = recompute;
      expect_homes_do_not_matter(training, expected, {UpdateTime::gradient});
    }
}

TEST_P(OffloadSameBits, UpdatesBehindTheirGradientsInHalfPrecision) {
  TrainingCase training = without_clipping(small_case(GetParam(), 0, true));
  training.options.dtype = training.options.communication_dtype = DType::bf16;
  const TrainingResult expected = run_training(training);
  for (const int stage : GetParam() == 1 ? std::vector<int>{0} : std::vector<int>{1, 2, 3}) {
    training.options.zero.stage = stage;
    expect_homes_do_not_matter(training, expected, {UpdateTime::gradient});
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, OffloadSameBits, testing::Values(1, 2, 4));

TEST(OffloadSameBitsOf, StochasticRounding) {
  TrainingCase training = small_case(2, 2);
  training.options.dtype = training.options.communication_dtype = DType::bf16;
  training.options.state_recipe = train::StateRecipe::bf16_sr;
  expect_homes_do_not_matter(training, run_training(training));
}

TEST(OffloadSameBitsOf, StochasticRoundingBehindGradients) {
  TrainingCase training = without_clipping(small_case(2, 2));
  training.options.dtype = training.options.communication_dtype = DType::bf16;
  training.options.state_recipe = train::StateRecipe::bf16_sr;
  expect_homes_do_not_matter(training, run_training(training), {UpdateTime::gradient});
}

/// Updates run in the last micro-step, or in layer-major order after the sum over all micro-steps.
TEST(OffloadSameBitsOf, MicroStepsBehindGradients) {
  for (const bool layer_major : {false, true})
    for (const int accumulation : {2, 3}) {
      TrainingCase training = without_clipping(small_case(2, layer_major ? 1 : 2));
      training.options.accumulation = accumulation;
      training.options.global_batch = 4 * accumulation;
      training.options.micro_batch = 2;
      const TrainingResult expected = run_training(training);
      training.options.offload.layer_major = layer_major;
      expect_homes_do_not_matter(training, expected, {UpdateTime::gradient});
    }
}

/// Memory is short, part of the records stays on the device, and at stage 3 small units stay whole
/// on all ranks: updates send them between the gathers of others.
TEST(OffloadSameBitsOf, PartsBehindGradients) {
  TrainingCase training = without_clipping(small_case(2, 3));
  training.options.tile_elements = 1024;
  training.options.zero.param_persistence_threshold_elements = 2000;
  const TrainingResult expected = run_training(training);
  const auto whole = static_cast<double>(expected.memory.arena());
  training.options.offload.updates = UpdateTime::gradient;
  for (const double ratio : {0.0, 0.5, 1.0})
    for (const Home target : {Home::host, Home::disk})
      for (const double share : {1.0, 0.95}) {
        training.options.offload.optimizer = training.options.offload.parameters = target;
        training.options.offload.optimizer_ratio = target == Home::host ? ratio : 1;
        training.options.offload.device_memory_bytes = std::llround(share * whole);
        expect_same(expected, run_training(training),
                    name_of(target) + ", ratio " + std::to_string(ratio) + ", share " +
                        std::to_string(share));
      }
}

/// Records of every shape give the same bits on every tier.
TEST(OffloadSameBitsOf, StateRecipes) {
  using train::OptimizerType;
  using train::StateRecipe;
  const struct {
    OptimizerType type;
    StateRecipe recipe;
  } cases[] = {{OptimizerType::adamw, StateRecipe::packed_master},
               {OptimizerType::adamw, StateRecipe::packed_bf16_moments},
               {OptimizerType::adamw, StateRecipe::eight_bit},
               {OptimizerType::lion, StateRecipe::packed_bf16_moments},
               {OptimizerType::lion, StateRecipe::bf16_moments}};
  for (const auto& [type, recipe] : cases)
    for (const int world : {1, 2}) {
      TrainingCase training = small_case(world, 0);
      training.options.dtype = training.options.communication_dtype = DType::bf16;
      training.options.optimizer.type = type;
      training.options.state_recipe = recipe;
      const TrainingResult expected = run_training(training);
      training.options.zero.stage = world == 1 ? 0 : 3;
      training.options.tile_elements = 2048;
      for (const Home optimizer : {Home::host, Home::disk})
        for (const Home parameters : {Home::device, optimizer}) {
          training.options.offload.optimizer = optimizer;
          training.options.offload.parameters = parameters;
          training.options.offload.updates =
              parameters == Home::device ? UpdateTime::next_step : UpdateTime::step_end;
          expect_same(expected, run_training(training),
                      "recipe " + std::to_string(static_cast<int>(recipe)) + ", optimizer " +
                          name_of(optimizer) + ", parameters " + name_of(parameters));
        }
    }
}

TEST(OffloadSameBitsOf, SkippedSteps) {
  TrainingCase training = small_case(2, 3);
  skip_first_steps(training.options);
  const TrainingResult expected = run_training(training);
  EXPECT_GT(expected.metrics.back().skipped, 0);
  EXPECT_GT(expected.metrics.back().updates, 0);
  expect_homes_do_not_matter(training, expected);
}

TEST(OffloadSameBitsOf, MicroSteps) {
  for (const int accumulation : {2, 3}) {
    TrainingCase training = small_case(2, 2);
    training.options.accumulation = accumulation;
    training.options.global_batch = 4 * accumulation;
    training.options.micro_batch = 2;
    expect_homes_do_not_matter(training, run_training(training));
  }
}

/// Layer-major order reduces once per step, so it agrees with stages 0 and 1.
TEST(OffloadSameBitsOf, MicroBatchesLayerByLayer) {
  for (const int world : {1, 2}) {
    TrainingCase training = small_case(world, 0);
    training.options.dtype = training.options.communication_dtype =
        world == 1 ? DType::f32 : DType::bf16;
    training.options.accumulation = 3;
    training.options.micro_batch = 2;
    training.options.global_batch = 6 * world;
    const TrainingResult expected = run_training(training);
    training.options.offload.layer_major = true;
    expect_same(expected, run_training(training), "layer by layer");
    for (const int stage : world == 1 ? std::vector<int>{0} : std::vector<int>{1, 2, 3}) {
      training.options.zero.stage = stage;
      training.options.activation_checkpointing = stage == 3;
      for (const Home target : {Home::host, Home::disk}) {
        training.options.offload.optimizer = target;
        training.options.offload.parameters = Home::host;
        training.options.offload.activations = stage == 3 ? Home::host : Home::device;
        expect_same(expected, run_training(training),
                    "stage " + std::to_string(stage) + ", " + name_of(target));
      }
    }
  }
}

/// Records read for the next step lie where transfers lay before, so the arena stays within the
/// budget that fits without them.
TEST(OffloadSameBitsOf, RecordsReadDuringTheStepBefore) {
  TrainingCase training = small_case(1, 0);
  training.model.layers = 6;
  training.options.offload.optimizer = Home::disk;
  const comm::SingleCommunicator communicator;
  const compile::StepPrograms set = build_rank(training, communicator);
  ASSERT_TRUE(set.find(compile::ProgramKind::read_ahead));
  const std::vector<runtime::Instruction>& step = set.train(zero::MicroStepKind::only).instructions;
  std::int64_t ahead = 0, all = 0, before_backward_ends = 0;
  std::size_t last_backward = 0;
  for (std::size_t i = 0; i < step.size(); ++i)
    if (step[i].pass == runtime::Pass::backward) last_backward = i;
  for (std::size_t i = 0; i < step.size(); ++i) {
    if (step[i].queue != runtime::Queue::disk_read) continue;
    all += step[i].outputs[0].bytes;
    if (!step[i].label.starts_with("read ahead")) continue;
    ahead += step[i].outputs[0].bytes;
    if (i < last_backward) before_backward_ends += step[i].outputs[0].bytes;
  }
  EXPECT_GT(ahead, all / 4);
  EXPECT_EQ(before_backward_ends, ahead);
  std::int64_t made_ready = 0;
  for (const runtime::Instruction& in : set.find(compile::ProgramKind::read_ahead)->instructions)
    made_ready += in.outputs[0].bytes;
  EXPECT_EQ(made_ready, ahead);
  for (const runtime::Instruction& in : set.find(compile::ProgramKind::drain)->instructions)
    EXPECT_FALSE(in.label.starts_with("read ahead")) << in.label;

  const TrainingResult late = run_training(training);
  training.options.offload.optimizer = Home::device;
  expect_same(run_training(training), late, "read ahead");
}

/// Updates stand where the forward pass needs them: the first layers compute before the last ones
/// are updated.
TEST(OffloadSameBitsOf, UpdatesAmongTheForwardPass) {
  TrainingCase training = small_case(1, 0);
  training.model.layers = 6;
  training.options.offload.optimizer = Home::disk;
  const comm::SingleCommunicator communicator;
  const compile::StepPrograms set = build_rank(training, communicator);
  bool forward = false, update_behind_forward = false;
  for (const runtime::Instruction& in : set.train(zero::MicroStepKind::only).instructions) {
    forward = forward || in.label.starts_with("layer.0.");
    update_behind_forward =
        update_behind_forward || (forward && in.label.starts_with("update layer.5"));
  }
  EXPECT_TRUE(update_behind_forward);
}

TEST(OffloadSameBitsOf, Recomputation) {
  TrainingCase training = small_case(2, 3);
  const TrainingResult expected = run_training(training);
  training.options.activation_checkpointing = true;
  expect_homes_do_not_matter(training, expected);
}

/// Makes layers save values of 64 KiB and more; smaller ones never leave (plan/choices.cpp).
TrainingCase with_large_activations(TrainingCase training) {
  training.model.context = training.options.sequence_length = 128;
  training.model.layers = 6;
  return training;
}

/// Runs in the smallest share of `bytes` of device memory that suffices, since activations leave
/// the device only when memory is short.
TrainingResult run_in_little_memory(TrainingCase training, std::int64_t bytes) {
  for (double share = 0.4;; share += 0.05) {
    training.options.offload.device_memory_bytes = std::llround(share * static_cast<double>(bytes));
    try {
      return run_training(training);
    } catch (const OutOfMemory&) {
      if (share > 1.5) throw;
    }
  }
}

TEST(OffloadSameBitsOf, Activations) {
  for (const bool llama : {false, true})
    for (const bool recompute : {false, true}) {
      TrainingCase training = with_large_activations(small_case(2, 3, llama));
      training.options.activation_checkpointing = recompute;
      const TrainingResult expected = run_training(training);
      for (const Home target : {Home::host, Home::disk}) {
        training.options.offload.activations = target;
        const TrainingResult result = run_in_little_memory(training, expected.memory.arena());
        expect_same(expected, result, "activations on " + name_of(target));
        EXPECT_GE(result.memory.pinned.transient - expected.memory.pinned.transient, 1 << 16);
        EXPECT_EQ(result.memory.disk.transient >= 1 << 16, target == Home::disk);
      }
    }
}

/// Less device memory means more transfers and the same numbers, down to a refusal that says why.
TEST(OffloadSameBitsOf, BudgetsOfTheDevice) {
  for (const bool llama : {false, true}) {
    TrainingCase training = small_case(1, 0, llama);
    training.model.layers = 8;
    training.options.activation_checkpointing = true;
    training.options.zero.param_persistence_threshold_elements = 2000;
    const TrainingResult expected = run_training(training);
    training.options.offload = {
        .optimizer = Home::disk, .parameters = Home::host, .activations = Home::host};
    const auto whole = static_cast<double>(expected.memory.arena());
    double least = 1;
    for (const double share : {0.6, 0.4, 0.2, 0.02}) {
      training.options.offload.device_memory_bytes = std::llround(share * whole);
      try {
        const TrainingResult result = run_training(training);
        expect_same(expected, result, "share " + std::to_string(share));
        EXPECT_LE(result.memory.arena(), training.options.offload.device_memory_bytes);
        least = share;
      } catch (const OutOfMemory& error) {
        EXPECT_NE(std::string(error.what()).find("device"), std::string::npos) << error.what();
      }
    }
    EXPECT_LE(least, 0.4);
    EXPECT_GT(least, 0.02);
  }
}

TEST(OffloadSameBitsOf, PartsOfTheOptimizer) {
  TrainingCase training = small_case(2, 1);
  training.options.tile_elements = 1024;
  const TrainingResult expected = run_training(training);
  for (const double ratio : {0.0, 0.3, 0.5, 1.0}) {
    training.options.offload.optimizer_ratio = ratio;
    for (const Home target : {Home::host, Home::disk}) {
      training.options.offload.optimizer = target;
      expect_same(expected, run_training(training), "ratio " + std::to_string(ratio));
    }
  }
}

}  // namespace
}  // namespace strata::tests
