#include "train/planning/memory_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "train/planning/memory_target.h"

namespace strata::train {
namespace {

constexpr std::int64_t kGB = 1'000'000'000;

TrainOptions options_of(const std::string& target) {
  TrainOptions options;
  options.target.memory = target;
  return options;
}

MachineFound cpu_host(std::int64_t host_bytes) {
  return {.machine = machine::cpu_machine(1),
          .local_ranks = 2,
          .host_bytes = host_bytes,
          .owner = "a rank",
          .taken_by = ""};
}

MachineFound gpu_host() {
  kernels::DeviceCapabilities capabilities;
  capabilities.backend = kernels::DeviceCapabilities::Backend::cuda;
  return {.machine = machine::typical_machine(capabilities),
          .host_bytes = 64 * kGB,
          .device_bytes = 24 * kGB,
          .device_taken_bytes = kGB,
          .owner = "the device",
          .taken_by = "the driver"};
}

TEST(MemoryBudget, OfAProcessThatComputesIsTheTargetWithoutWhatItTakesItself) {
  TrainOptions options = options_of("2GB");
  const MachineFound host = cpu_host(16 * kGB);
  const std::int64_t arenas = 2 * (2 * kGB - bytes_beside_arenas(options, host.machine, 2));
  EXPECT_EQ(budget_for(cpu_host(16 * kGB), options).host_bytes, arenas);
  options.offload.host_memory_bytes = kGB;
  EXPECT_EQ(budget_for(cpu_host(16 * kGB), options).host_bytes, kGB) << "limits arenas";
  EXPECT_EQ(budget_for(cpu_host(0), options).host_bytes, kGB) << "whatever the host has";
  options = options_of("9GB");
  EXPECT_THROW(budget_for(cpu_host(16 * kGB), options), ConfigError);
}

TEST(MemoryBudget, OfAProcessWithManyThreadsLeavesRoomForTheirBuffers) {
  const TrainOptions options = options_of("2GB");
  const auto mebibytes = [&options](int threads, int local_ranks) {
    return static_cast<double>(process_bytes(options, machine::cpu_machine(threads), local_ranks)) /
           (1 << 20);
  };
  EXPECT_EQ(mebibytes(1, 1), 32);
  EXPECT_EQ(mebibytes(8, 1), 39);
  EXPECT_EQ(mebibytes(64, 1), 17 + 4 + 2 * 64) << "many threads have their buffers at once";
  EXPECT_EQ(mebibytes(1, 2), 17 / 2.0 + 15) << "ranks of a host share code";
  const machine::Machine one = machine::cpu_machine(1);
  EXPECT_EQ(bytes_beside_arenas(options, one, 1), process_bytes(options, one, 1));
  EXPECT_EQ(bytes_beside_arenas(options, one, 2), process_bytes(options, one, 1) + (8 << 20));
}

TEST(MemoryBudget, OfAHostAboutWhichNothingIsKnownHasNoLimit) {
  TrainOptions options = options_of("auto");
  EXPECT_EQ(budget_for(cpu_host(0), options).host_bytes, 0);
  options.offload.host_memory_bytes = kGB;
  EXPECT_EQ(budget_for(cpu_host(0), options).host_bytes, kGB);
}

TEST(MemoryBudget, OfADeviceObeysTargetAndLimits) {
  TrainOptions options = options_of("auto");
  EXPECT_EQ(budget_for(gpu_host(), options).device_bytes, 23 * kGB);
  options = options_of("10GB");
  EXPECT_EQ(budget_for(gpu_host(), options).device_bytes, 9 * kGB);
  options.offload.device_memory_bytes = 5 * kGB;
  options.offload.host_memory_bytes = 8 * kGB;
  EXPECT_EQ(budget_for(gpu_host(), options).device_bytes, 5 * kGB);
  EXPECT_EQ(budget_for(gpu_host(), options).host_bytes, 8 * kGB);
  MachineFound unknown = gpu_host();
  unknown.device_bytes = unknown.device_taken_bytes = 0;
  EXPECT_EQ(budget_for(unknown, options_of("auto")).device_bytes, kUnlimitedMemory);
  EXPECT_EQ(budget_for(unknown, options).device_bytes, 5 * kGB);
}

TEST(MemoryBudget, OfTheHostOfADeviceLeavesMemoryToOthers) {
  TrainOptions options = options_of("auto");
  constexpr double kPart = 0.95, kRounding = 1;
  const auto host_bytes = [&options](const MachineFound& found) {
    return static_cast<double>(budget_for(found, options).host_bytes);
  };
  EXPECT_NEAR(host_bytes(gpu_host()), kPart * 64 * kGB, kRounding);
  MachineFound here = gpu_host();
  here.is_here = true;
  here.local_ranks = 4;
  const auto processes = static_cast<double>(4 * process_bytes(options, here.machine, 4));
  EXPECT_NEAR(host_bytes(here), kPart * (64 * kGB - processes), kRounding);
  options.offload.host_memory_bytes = 64 * kGB;
  EXPECT_EQ(host_bytes(here), 64 * kGB - processes) << "--host-memory says how much may be taken";
  EXPECT_EQ(host_bytes(gpu_host()), 64 * kGB);
  here.host_bytes = kGB / 100;
  EXPECT_EQ(host_bytes(here), 1) << "0 would mean that there is no limit";
  options = options_of("auto");
  here.host_bytes = 0;
  EXPECT_EQ(host_bytes(here), 0) << "nothing is known";
}

}  // namespace
}  // namespace strata::train
