#include "train/run/memory_advice.h"

#include <gtest/gtest.h>

#include "comm/factory.h"
#include "kernels/cpu/cpu_stream.h"
#include "train/engine/memory_report.h"
#include "train/models/hf_config.h"

namespace strata::train {
namespace {

constexpr int kWorld = 4;

/// Activations weigh most.
ProgramRequest long_request() {
  ProgramRequest request{.model = read_model_config("gpt2-tiny"), .options = {}, .evaluate = true};
  request.options.sequence_length = 128;
  request.options.micro_batch = 4;
  return request;
}

/// State weighs most, and little of it is gathered at a time.
ProgramRequest wide_request() {
  ProgramRequest request{
      .model = read_model_config("gpt2-bytes-10m"), .options = {}, .evaluate = true};
  request.options.sequence_length = 16;
  request.options.micro_batch = 1;
  request.options.zero.prefetch_bucket_elements = 0;
  request.options.zero.max_reuse_distance_elements = 0;
  request.options.zero.max_live_parameters_elements = 1'000'000;
  return request;
}

std::int64_t arena_bytes(const ProgramRequest& request, int world) {
  const auto communicators = comm::make_thread_communicators(world);
  return build_programs(request, *communicators[0], kernels::CpuDevice(1).capabilities())
      .arena_bytes(runtime::Tier::device);
}

std::string advice(const ProgramRequest& request, int world, std::int64_t free_bytes) {
  return memory_advice(request, {.world = world, .local_world = world}, free_bytes);
}

/// What the advice must say when `change` is made and just fits.
std::string fits(const std::string& flags, const ProgramRequest& changed, int world) {
  const std::int64_t bytes = arena_bytes(changed, world);
  std::string text = flags + " is the cheapest change that fits: it needs about " +
                     format_bytes(static_cast<double>(bytes));
  if (world > 1)
    text += " per rank, " + format_bytes(static_cast<double>(bytes * world)) + " on this host";
  return text;
}

TEST(MemoryAdvice, NamesTheLowestStageThatFits) {
  for (const int stage : {1, 2, 3}) {
    ProgramRequest changed = wide_request();
    changed.options.zero.stage = stage;
    EXPECT_EQ(advice(wide_request(), kWorld, arena_bytes(changed, kWorld) * kWorld),
              fits("--zero " + std::to_string(stage), changed, kWorld));
  }
}

TEST(MemoryAdvice, PutsSmallerMicroBatchesBeforeCheckpointing) {
  ProgramRequest changed = long_request();
  changed.options.micro_batch = 2;
  changed.options.accumulation = 2;
  EXPECT_EQ(advice(long_request(), 1, arena_bytes(changed, 1)),
            fits("--micro-batch 2 --accumulation 2", changed, 1));
  changed.options.micro_batch = 1;
  changed.options.accumulation = 4;
  changed.options.activation_checkpointing = true;
  EXPECT_EQ(advice(long_request(), 1, arena_bytes(changed, 1)),
            fits("--micro-batch 1 --accumulation 4 --activation-checkpointing", changed, 1));
}

TEST(MemoryAdvice, SaysWhatTheSmallestPlanNeedsWhenNothingFits) {
  ProgramRequest changed = long_request();
  changed.options.micro_batch = 1;
  changed.options.accumulation = 4;
  changed.options.activation_checkpointing = true;
  EXPECT_EQ(advice(long_request(), 1, 1000),
            "even --micro-batch 1 --accumulation 4 --activation-checkpointing needs about " +
                format_bytes(static_cast<double>(arena_bytes(changed, 1))) +
                "; use a shorter --sequence-length, a smaller model, or more hosts");
  EXPECT_NE(advice(long_request(), 2, 1000).find("fewer ranks on this host, or more hosts"),
            std::string::npos);
}

TEST(MemoryAdvice, NamesTheFirstThatNeedsLessWhereWhatIsFreeIsUnknown) {
  ProgramRequest changed = wide_request();
  changed.options.zero.stage = 1;
  EXPECT_EQ(advice(wide_request(), kWorld, 0), fits("--zero 1", changed, kWorld));
}

TEST(MemoryAdvice, UnderALimit) {
  ProgramRequest changed = long_request();
  changed.options.micro_batch = 2;
  changed.options.accumulation = 2;
  ProgramRequest limited = long_request();
  limited.options.offload.device_memory_bytes = arena_bytes(changed, 1);
  EXPECT_EQ(advice(limited, 1, 0), fits("--micro-batch 2 --accumulation 2", changed, 1));
  limited.options.offload.device_memory_bytes = 1000;
  EXPECT_EQ(advice(limited, 1, 0),
            "no ZeRO stage, micro-batch or checkpointing fits these limits; raise --device-memory "
            "or --host-memory, use a shorter --sequence-length, a smaller model, or more hosts");
}

TEST(MemoryAdvice, KnowsWhenThereIsNothingToSave) {
  ProgramRequest smallest = long_request();
  smallest.options.micro_batch = 1;
  smallest.options.activation_checkpointing = true;
  EXPECT_EQ(advice(smallest, 1, 1000),
            "no ZeRO stage, micro-batch or checkpointing needs less; use a shorter "
            "--sequence-length, a smaller model, or more hosts");
}

}  // namespace
}  // namespace strata::train
