#include "machine/measure_cpu.h"

#include <gtest/gtest.h>

namespace strata::machine {
namespace {

TEST(MeasureCpu, ReplacesWhatWasAssumed) {
  Machine machine = cpu_machine(1);
  measure_cpu(machine, DType::f32);
  EXPECT_EQ(machine.device.fp32_flops.source, Source::measured);
  EXPECT_GT(machine.device.fp32_flops, 1e8);
  EXPECT_EQ(machine.device.bf16_flops, cpu_machine(1).device.bf16_flops) << "nobody asked for it";
  EXPECT_EQ(machine.device.bytes_per_second.source, Source::measured);
  EXPECT_GT(machine.device.bytes_per_second, 1e8);
}

}  // namespace
}  // namespace strata::machine
