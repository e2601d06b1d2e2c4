// Measures the memory of running steps without asking the layout: patterns in the arena, counted
// allocations, and the kernel's count of the process's peak.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstdlib>
#include <cstring>

#include "comm/factory.h"
#include "core/testing/allocation_counter.h"
#include "tests/training/rank_threads.h"
#include "tests/training/ranks.h"
#include "train/config/make_plan.h"
#include "train/engine/weights.h"

namespace strata::tests {
namespace {

using train::Engine;

void fill_batch(std::int64_t step, int micro_step, const train::MicroBatch& batch) {
  for (std::size_t i = 0; i < batch.samples.size(); ++i)
    batch.samples[i] = step * 100 + static_cast<std::int64_t>(i);
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
    batch.tokens[i] = static_cast<std::int32_t>((i * 7 + static_cast<std::size_t>(step)) % 90);
    batch.targets[i] =
        static_cast<std::int32_t>((i * 5 + static_cast<std::size_t>(micro_step)) % 90);
  }
}

std::unique_ptr<Engine> engine_of(const TrainingCase& training, comm::Communicator& communicator) {
  train::EngineParts parts;
  parts.programs = build_rank(training, communicator);
  parts.site = std::make_unique<train::CpuSite>(communicator, training.threads);
  parts.initial_loss_scale = train::initial_loss_scale(training.options);
  return std::make_unique<Engine>(std::move(parts));
}

TrainingCase case_of(int stage, DType dtype, bool recompute, int accumulation, int threads) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.model.residual_dropout = training.model.attention_dropout = 0.1;
  training.options = tiny_options(2, 4 * accumulation, 5);
  training.options.accumulation = accumulation;
  training.options.micro_batch = 2;
  training.options.dtype = training.options.communication_dtype = dtype;
  training.options.zero.stage = stage;
  training.options.activation_checkpointing = recompute;
  training.world = 2;
  training.threads = threads;
  return training;
}

class MeasuredMemory : public testing::TestWithParam<int> {};

/// Bytes from the arena's start to the last one that is not `pattern`.
std::int64_t highest_touched(const runtime::Arena& arena, std::int64_t bytes, std::byte pattern) {
  while (bytes > 0 && arena.base()[bytes - 1] == pattern) --bytes;
  return bytes;
}

TEST_P(MeasuredMemory, NothingBehindThePredictedByteIsTouched) {
  // The set claims a larger arena than its Programs need; the bytes after that must not change.
  constexpr std::int64_t kBehind = 1 << 20;
  constexpr std::byte kPattern{0x5c};
  for (const auto& [recompute, virtual_ranks] : {std::pair{false, 0}, {true, 0}, {false, 8}}) {
    TrainingCase training = case_of(GetParam(), DType::f32, recompute, 1, 1);
    training.options.virtual_ranks = virtual_ranks;
    training.options.global_batch = training.options.micro_batch * training.options.accumulation *
                                    train::leaves(training.options, 2);
    on_rank_threads(2, [&](comm::Communicator& communicator) {
      train::EngineParts parts;
      parts.programs = build_rank(training, communicator);
      const compile::StepPrograms predicted = parts.programs;
      const runtime::Program& step =
          std::ranges::max_element(predicted.programs, {}, [](const auto& program) {
            return program.second.arena_bytes[0];
          })->second;
      parts.programs.programs.begin()->second.arena_bytes[0] = step.arena_bytes[0] + kBehind;
      const std::int64_t longest = parts.programs.arena_bytes(runtime::Tier::device);
      parts.site = std::make_unique<train::CpuSite>(communicator);
      Engine engine(std::move(parts));
      const std::int64_t persistent = step.persistent_bytes[0];
      std::memset(engine.arena().base() + persistent, static_cast<int>(kPattern),
                  static_cast<std::size_t>(longest - persistent));
      train::initialize_weights(engine, 1);
      for (int i = 0; i < 2; ++i) engine.train_step(i, fill_batch);
      const std::int64_t trained = highest_touched(engine.arena(), longest, kPattern);
      EXPECT_LE(trained, step.arena_bytes[0]);
      EXPECT_GT(trained, persistent + step.live_bytes[0] / 2);  // not trivially small
      EXPECT_LE(static_cast<double>(trained - persistent),
                1.05 * static_cast<double>(step.live_bytes[0]));
      engine.evaluate(1, fill_batch);
      EXPECT_LE(highest_touched(engine.arena(), longest, kPattern),
                predicted.arena_bytes(runtime::Tier::device));
      communicator.close();
    });
  }
}

/// Counts the allocations of all threads during steps 3 to 5.
AllocationCount count_steps(const TrainingCase& training) {
  AllocationCount count;
  std::barrier meet(training.world);
  on_rank_threads(training.world, [&](comm::Communicator& communicator) {
    const auto engine = engine_of(training, communicator);
    train::initialize_weights(*engine, 1);
    const train::FillBatch fill = fill_batch;
    for (int i = 0; i < 2; ++i) engine->train_step(i, fill);
    meet.arrive_and_wait();
    if (communicator.rank() == 0) start_counting_allocations();
    meet.arrive_and_wait();
    for (int i = 2; i < 5; ++i) engine->train_step(i, fill);
    meet.arrive_and_wait();
    if (communicator.rank() == 0) count = stop_counting_allocations();
    meet.arrive_and_wait();
    communicator.close();
  });
  return count;
}

TEST_P(MeasuredMemory, StepsAllocateNothing) {
  if (!can_count_allocations()) GTEST_SKIP() << "a sanitizer owns the allocator";
  for (DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (int accumulation : {1, 2})
      for (int threads : {1, 2}) {
        const AllocationCount count =
            count_steps(case_of(GetParam(), dtype, GetParam() % 2 == 1, accumulation, threads));
        EXPECT_EQ(count.allocations, 0) << name_of(dtype) << ", accumulation " << accumulation
                                        << ", threads " << threads << "\n"
                                        << count.first;
      }
}

TEST_P(MeasuredMemory, StepsOfVirtualRanksAllocateNothing) {
  if (!can_count_allocations()) GTEST_SKIP() << "a sanitizer owns the allocator";
  TrainingCase training = case_of(GetParam(), DType::bf16, false, 2, 1);
  training.options.virtual_ranks = 8;
  training.options.global_batch = 8 * training.options.micro_batch * training.options.accumulation;
  const AllocationCount count = count_steps(training);
  EXPECT_EQ(count.allocations, 0) << count.first;
}

TEST_P(MeasuredMemory, StepsOfALlamaAllocateNothing) {
  if (!can_count_allocations()) GTEST_SKIP() << "a sanitizer owns the allocator";
  TrainingCase training = case_of(GetParam(), DType::f32, false, 1, 1);
  training.model = tiny_llama();
  const AllocationCount count = count_steps(training);
  EXPECT_EQ(count.allocations, 0) << count.first;
}

TEST(AllocationCounter, SeesEachKind) {
  if (!can_count_allocations()) GTEST_SKIP() << "a sanitizer owns the allocator";
  start_counting_allocations();
  delete new std::string(100, 'x');
  std::free(std::malloc(10));  // NOLINT
  const AllocationCount count = stop_counting_allocations();
  EXPECT_GE(count.allocations, 2);
  EXPECT_NE(count.first, "");
}

INSTANTIATE_TEST_SUITE_P(Stages, MeasuredMemory, testing::Values(0, 1, 2, 3));

}  // namespace
}  // namespace strata::tests
