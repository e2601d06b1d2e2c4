#include "machine/measure_cpu.h"

#include <gtest/gtest.h>

#include <fstream>

#include "machine/host_memory.h"

namespace strata::machine {
namespace {

TEST(MeasureCpu, ReplacesWhatWasAssumed) {
  const Machine assumed = cpu_machine(1);
  Machine machine = assumed;
  EXPECT_GT(measure_cpu(machine, DType::f32, std::int64_t{64} << 20), 0);
  EXPECT_EQ(machine.device.fp32_flops.source, Source::measured);
  EXPECT_GT(machine.device.fp32_flops, 0) << "how much is a matter of the CPU and who else uses it";
  EXPECT_NE(machine.device.fp32_flops.value, assumed.device.fp32_flops.value);
  EXPECT_EQ(machine.device.bf16_flops, assumed.device.bf16_flops) << "nobody asked for it";
  EXPECT_EQ(machine.device.bytes_per_second.source, Source::measured);
  EXPECT_GT(machine.device.bytes_per_second, 0);
  EXPECT_NE(machine.device.bytes_per_second.value, assumed.device.bytes_per_second.value);
}

TEST(MeasureCpu, TakesNoMoreMemoryThanItMay) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps memory of its own";
#endif
  constexpr std::int64_t kMost = std::int64_t{24} << 20, kBeside = std::int64_t{8} << 20;
  Machine machine = cpu_machine(1);
  (void)measure_cpu(machine, DType::bf16, kMost);  // loads and warms up libraries
  std::ofstream reset("/proc/self/clear_refs");
  if (!(reset << 5 << std::flush)) GTEST_SKIP() << "this kernel resets no peak";
  const std::int64_t before = peak_resident_bytes();
  EXPECT_EQ(measure_cpu(machine, DType::bf16, kMost), kMost / 2);
  EXPECT_LE(peak_resident_bytes() - before, kMost + kBeside);
  EXPECT_EQ(machine.device.bf16_flops.source, Source::measured);
}

TEST(MeasureCpu, WithoutRoomTheRatesStay) {
  Machine machine = cpu_machine(1);
  EXPECT_EQ(measure_cpu(machine, DType::f32, std::int64_t{3} << 20), 0);
  EXPECT_EQ(machine.device, cpu_machine(1).device);
}

}  // namespace
}  // namespace strata::machine
