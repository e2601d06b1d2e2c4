#include "machine/measure_cpu.h"

#include <gtest/gtest.h>

#include <fstream>

#include "machine/host_memory.h"

namespace strata::machine {
namespace {

TEST(MeasureCpu, ReplacesWhatWasAssumed) {
  Machine machine = cpu_machine(1);
  EXPECT_GT(measure_cpu(machine, DType::f32, std::int64_t{64} << 20), 0);
  EXPECT_EQ(machine.device.fp32_flops.source, Source::measured);
  EXPECT_GT(machine.device.fp32_flops, 1e8);
  EXPECT_EQ(machine.device.bf16_flops, cpu_machine(1).device.bf16_flops) << "nobody asked for it";
  EXPECT_EQ(machine.device.bytes_per_second.source, Source::measured);
  EXPECT_GT(machine.device.bytes_per_second, 1e8);
}

TEST(MeasureCpu, TakesNoMoreMemoryThanItMay) {
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
