#include "train/run/memory_advice.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "comm/factory.h"
#include "core/format_bytes.h"
#include "train/config/make_plan.h"
#include "train/models/hf_config.h"

namespace strata::train {
namespace {

constexpr int kWorld = 4;

/// A request whose memory is mostly activations.
ProgramRequest long_request() {
  ProgramRequest request{.model = read_model_config("gpt2-tiny"), .options = {}, .evaluate = true};
  request.options.sequence_length = 128;
  request.options.micro_batch = 4;
  return request;
}

/// A request whose memory is mostly state, little of which is gathered at a time.
ProgramRequest wide_request(int world = kWorld) {
  ProgramRequest request{
      .model = read_model_config("gpt2-bytes-10m"), .options = {}, .evaluate = true};
  request.options.sequence_length = 16;
  request.options.micro_batch = 1;
  request.options.global_batch = world;
  request.options.zero.prefetch_bucket_elements = 0;
  request.options.zero.max_reuse_distance_elements = 0;
  request.options.zero.max_live_parameters_elements = 1'000'000;
  return request;
}

MemoryNeeds needs_of(const ProgramRequest& request, int world) {
  ProgramRequest quick = request;
  quick.scheduled = !choices_of(request.options).moves_state();
  return plan::memory_needs(
      build_programs(quick, {0, world, comm::Exchange::peer_memory}, machine::cpu_machine(1)));
}

/// The memory of a CPU, whose arenas are in host memory.
MachineMemory cpu_memory(int world, std::int64_t free_bytes) {
  return {.local_world = world, .device_bytes = {}, .host_bytes = free_bytes};
}

std::string whole_advice(const ProgramRequest& request, int world, const MachineMemory& memory) {
  return memory_advice(request, {.seat = {0, world, comm::Exchange::peer_memory},
                                 .machine = machine::cpu_machine(1),
                                 .memory = memory});
}
/// Its first line: the cheapest change that fits.
std::string advice(const ProgramRequest& request, int world, const MachineMemory& memory) {
  const std::string text = whole_advice(request, world, memory);
  return text.substr(0, text.find('\n'));
}
std::string advice(const ProgramRequest& request, int world, std::int64_t free_bytes) {
  return advice(request, world, cpu_memory(world, free_bytes));
}

/// Bytes that all ranks need of a CPU's memory.
std::int64_t bytes_of(const ProgramRequest& request, int world) {
  return cpu_memory(world, 0).host_share(needs_of(request, world)) * world;
}

std::int64_t foreseen_ns(const ProgramRequest& request) {
  const machine::Machine machine = machine::cpu_machine(1);
  std::int64_t ns = 0;
  for (const auto& [key, program] :
       build_programs(request, {0, 1, comm::Exchange::none}, machine).programs)
    for (const runtime::Instruction& in : program.instructions)
      ns += machine::foreseen_ns(machine, in.demand);
  return ns;
}

/// The advice that is expected if `flags` are the change and it just fits.
std::string fits(const std::string& flags, const ProgramRequest& changed, int world) {
  const std::int64_t bytes = bytes_of(changed, world) / world;
  std::string text =
      flags + " is the cheapest change that fits: it needs about " + format_bytes(bytes);
  if (world > 1) text += " per rank, " + format_bytes(bytes * world) + " on this host in all";
  return text;
}

TEST(MemoryAdvice, NamesTheLowestStageThatFits) {
  for (const int stage : {1, 2, 3}) {
    ProgramRequest changed = wide_request();
    changed.options.zero.stage = stage;
    EXPECT_EQ(advice(wide_request(), kWorld, bytes_of(changed, kWorld)),
              fits("--zero " + std::to_string(stage), changed, kWorld));
  }
}

TEST(MemoryAdvice, PutsSmallerMicroBatchesBeforeCheckpointing) {
  ProgramRequest changed = long_request();
  changed.options.micro_batch = 2;
  changed.options.accumulation = 2;
  EXPECT_EQ(advice(long_request(), 1, bytes_of(changed, 1)),
            fits("--micro-batch 2 --accumulation 2", changed, 1));
  changed.options.micro_batch = 1;
  changed.options.accumulation = 4;
  changed.options.activation_checkpointing = true;
  EXPECT_EQ(advice(long_request(), 1, bytes_of(changed, 1)),
            fits("--micro-batch 1 --accumulation 4 --activation-checkpointing --checkpoint-ratio "
                 "0.9375",
                 changed, 1))
      << "to make the last layer again frees nothing";
}

/// The memory lies between what recomputing norms needs and what recomputing everything needs.
TEST(MemoryAdvice, MakesNoMoreAgainThanWhatFits) {
  ProgramRequest norms = long_request();
  norms.options.micro_batch = 1;
  norms.options.accumulation = norms.options.global_batch = 4;
  norms.options.recompute_norms = true;
  ProgramRequest everything = norms;
  everything.options.activation_checkpointing = true;
  const std::int64_t most = bytes_of(norms, 1), least = bytes_of(everything, 1);
  ASSERT_LT(least, most);
  const std::int64_t free_bytes = (least + most) / 2;
  const std::string text = advice(norms, 1, free_bytes);
  const std::string flags = "--activation-checkpointing --checkpoint-ratio ";
  ASSERT_TRUE(text.starts_with(flags)) << text;
  EXPECT_EQ(advice(norms, 1, free_bytes), text);
  ProgramRequest part = everything;
  part.options.checkpoint_ratio = std::stod(text.substr(flags.size()));
  EXPECT_EQ(text, fits(flags + fmt::format("{}", part.options.checkpoint_ratio), part, 1));
  EXPECT_LE(bytes_of(part, 1), free_bytes);
  EXPECT_LT(foreseen_ns(part), foreseen_ns(everything));
  ProgramRequest less = part;
  less.options.checkpoint_ratio -= 1. / 16;
  EXPECT_GT(bytes_of(less, 1), free_bytes) << "the least";
}

TEST(MemoryAdvice, MovesStateToADriveWhereHostMemoryIsTooSmall) {
  ProgramRequest changed = wide_request();
  changed.options.zero.stage = 3;
  changed.options.offload.optimizer = plan::Home::disk;
  ProgramRequest whole = wide_request();
  whole.options.zero.stage = 3;
  ASSERT_LT(bytes_of(changed, kWorld), bytes_of(whole, kWorld));
  const std::string text = advice(wide_request(), kWorld, bytes_of(changed, kWorld));
  EXPECT_TRUE(text.starts_with("--zero 3 --offload-optimizer nvme --host-memory ")) << text;
  EXPECT_NE(text.find(" --nvme-path DIR is the cheapest change that fits: it needs about "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(" on the drive per rank, "), std::string::npos) << text;
}

/// Gradients wait in host memory if it has no limit, but it cannot hold their 43 MB.
TEST(MemoryAdvice, LimitsHostMemoryWhereGradientsAreToFollowTheState) {
  ProgramRequest request = wide_request(1);
  request.options.offload.optimizer = plan::Home::disk;
  request.options.offload.nvme_paths = {"."};
  const std::string text = advice(request, 1, {1, std::int64_t{1} << 30, std::int64_t{36} << 20});
  EXPECT_TRUE(text.starts_with("--device-memory 1GiB --host-memory 36MiB is the cheapest change"))
      << text;
}

TEST(MemoryAdvice, MovesStateToHostMemoryWhereTheDeviceIsTooSmall) {
  ProgramRequest changed = wide_request(1);
  changed.options.offload.optimizer = plan::Home::host;
  const MemoryNeeds needs = needs_of(changed, 1);
  ASSERT_LT(needs.device, needs_of(wide_request(1), 1).device);
  EXPECT_GT(needs.host, 2 * 4 * 10'000'000) << "two moments of each of 10 M parameters";
  ProgramRequest limited = wide_request(1);
  limited.options.offload.device_memory_bytes = needs.device;
  EXPECT_EQ(advice(limited, 1, {1, needs.device, 0}),
            "--offload-optimizer cpu is the cheapest change that fits: it needs about " +
                format_bytes(needs.device) + " on the device, " + format_bytes(needs.host) +
                " of host memory");
  // Parameters move as well if that is not enough.
  ProgramRequest further = changed;
  further.options.offload.parameters = plan::Home::host;
  const std::int64_t less = needs_of(further, 1).device;
  ASSERT_LT(less, needs.device);
  ProgramRequest tight = wide_request(1);
  tight.options.offload.device_memory_bytes = less;
  const std::string both = advice(tight, 1, {1, less, 0});
  EXPECT_TRUE(both.starts_with("--offload-optimizer cpu --offload-param cpu is the cheapest "))
      << both;
  // Host memory has no room either, not even for a part of it.
  limited.options.offload.host_memory_bytes = needs.host / 2;
  const std::string text = advice(limited, 1, {1, needs.device, 0});
  EXPECT_TRUE(text.starts_with("--offload-optimizer nvme ")) << text;
  EXPECT_NE(text.find(" --nvme-path DIR is the cheapest change that fits: "), std::string::npos)
      << text;
  // A drive is forbidden, too.
  limited.options.target.offload = plan::Home::host;
  const std::string kept = whole_advice(limited, 1, {1, needs.device, 0});
  EXPECT_TRUE(
      kept.starts_with("no ZeRO stage, micro-batch, checkpointing or offload within "
                       "--allow-offload host fits these limits; "))
      << kept;
  EXPECT_EQ(kept.find("nvme"), std::string::npos) << kept;
}

TEST(MemoryAdvice, SaysWhatTheSmallestPlanNeedsWhenNothingFits) {
  const std::string text = advice(long_request(), 1, 1000);
  EXPECT_TRUE(text.starts_with("even --micro-batch 1 --accumulation 4 --activation-checkpointing"))
      << text;
  EXPECT_TRUE(text.ends_with("; use a shorter --sequence-length or a smaller model")) << text;
  ProgramRequest of_two = long_request();
  of_two.options.global_batch = 8;
  const std::string for_two = advice(of_two, 2, 1000);
  EXPECT_TRUE(for_two.starts_with("even --zero 3 --micro-batch 1 ")) << for_two;
  EXPECT_TRUE(for_two.ends_with(", fewer ranks on this host or a smaller model")) << for_two;
}

TEST(MemoryAdvice, NamesTheFirstThatNeedsLessWhereWhatIsFreeIsUnknown) {
  ProgramRequest changed = wide_request();
  changed.options.zero.stage = 1;
  EXPECT_EQ(advice(wide_request(), kWorld, 0), fits("--zero 1", changed, kWorld));
}

TEST(MemoryAdvice, ListsSingleChangesByTheBytesThatTheySave) {
  const std::string text = whole_advice(long_request(), 1, cpu_memory(1, 1000));
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  ASSERT_GE(lines.size(), 5) << text;
  EXPECT_LE(lines.size(), 2 + 5) << text;
  EXPECT_EQ(lines[1],
            "  changes of one setting, those first that save most bytes for their time, as guessed "
            "and beside the settings without the change:");
  EXPECT_NE(text.find("\n    --micro-batch 2 --accumulation 2: "), std::string::npos) << text;
  EXPECT_NE(text.find("\n    --activation-checkpointing: "), std::string::npos) << text;
  EXPECT_NE(text.find("\n    --offload-optimizer nvme --nvme-path DIR: "), std::string::npos)
      << text;
  const std::regex saving(
      R"(: (\S+) (MiB|KiB) less per process, .*steps \S+ % \((\S+) ms\) slower)");
  double best = std::numeric_limits<double>::infinity();  // KiB per ms
  for (std::size_t i = 2; i < lines.size(); ++i) {
    std::smatch found;
    ASSERT_TRUE(std::regex_search(lines[i], found, saving)) << lines[i];
    const double kibibytes = std::stod(found[1]) * (found[2] == "MiB" ? 1024 : 1);
    const double of_time = kibibytes / std::stod(found[3]);
    EXPECT_LE(of_time, best * 1.01) << text;  // numbers are rounded
    best = of_time;
  }
}

/// What is guessed of a change is what the run with that change needs less.
TEST(MemoryAdvice, TheBytesOfASingleChangeAreThoseOfItsRun) {
  ProgramRequest changed = wide_request();
  changed.options.zero.stage = 1;
  const std::int64_t less = bytes_of(wide_request(), kWorld) - bytes_of(changed, kWorld);
  const std::string text = whole_advice(wide_request(), kWorld, cpu_memory(kWorld, 1000));
  const std::string flags = "\n    --zero 1: ";
  ASSERT_NE(text.find(flags), std::string::npos) << text;
  const double mebibytes = std::stod(text.substr(text.find(flags) + flags.size()));
  EXPECT_NEAR(mebibytes * (1 << 20) * kWorld, less, 0.01 * static_cast<double>(less)) << text;
}

TEST(MemoryAdvice, UnderALimit) {
  ProgramRequest changed = long_request();
  changed.options.micro_batch = 2;
  changed.options.accumulation = 2;
  ProgramRequest limited = long_request();
  limited.options.offload.device_memory_bytes = needs_of(changed, 1).device;
  EXPECT_EQ(advice(limited, 1, 0), fits("--micro-batch 2 --accumulation 2", changed, 1));
  limited.options.offload.device_memory_bytes = 1000;
  EXPECT_EQ(advice(limited, 1, 0),
            "no ZeRO stage, micro-batch, checkpointing or offload fits these limits; raise "
            "--device-memory or --host-memory, use a shorter --sequence-length or a smaller model");
}

}  // namespace
}  // namespace strata::train
