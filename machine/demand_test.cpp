#include "machine/demand.h"

#include <gtest/gtest.h>

#include "kernels/ops/attention.h"
#include "kernels/ops/linear.h"

namespace strata::machine {
namespace {

Machine gpu() {
  Machine machine;
  machine.device.capabilities.backend = kernels::DeviceCapabilities::Backend::cuda;
  machine.device.fp32_flops = measured(1e12);
  machine.device.bf16_flops = measured(1e13);
  machine.device.product_efficiency = assumed(0.5);
  machine.device.bytes_per_second = measured(1e11);
  machine.link = {.to_device = assumed(2e10), .to_host = assumed(1e10), .both_ways = {}};
  machine.memory.bytes_per_second = assumed(4e10);
  machine.peer_rate = assumed(1e9);
  machine.disk.read_rate = assumed(5e9);
  machine.disk.write_rate = assumed(2e9);
  machine.instruction_seconds = assumed(1e-6);
  return machine;
}

TEST(Demand, AProductTakesTheLargerOfArithmeticAndBytesAtTheRateOfItsType) {
  Demand product{.type = DType::f32, .flops = 2e12, .bytes = 1e11};
  EXPECT_DOUBLE_EQ(least_seconds(gpu(), product), 2);
  EXPECT_EQ(foreseen_ns(gpu(), product), 4'000'001'000) << "half of the peak is reached";
  product.bytes = 5e11;
  EXPECT_DOUBLE_EQ(least_seconds(gpu(), product), 5);
  EXPECT_EQ(foreseen_ns(gpu(), product), 5'000'001'000);
  product = {.type = DType::bf16, .flops = 2e13, .bytes = 1e11};
  EXPECT_DOUBLE_EQ(least_seconds(gpu(), product), 2);
}

TEST(Demand, WhatTravelsTakesItsOwnLink) {
  const auto least = [](Resource resource) {
    return least_seconds(gpu(),
                         {.resource = resource, .bytes = 8e11, .moved_bytes = 20'000'000'000});
  };
  EXPECT_DOUBLE_EQ(least(Resource::upload), 1);
  EXPECT_DOUBLE_EQ(least(Resource::download), 2);
  EXPECT_DOUBLE_EQ(least(Resource::disk_read), 4);
  EXPECT_DOUBLE_EQ(least(Resource::disk_write), 10);
  EXPECT_DOUBLE_EQ(least(Resource::peers), 20);
  EXPECT_DOUBLE_EQ(least(Resource::host), 20) << "operands under an update";
  EXPECT_DOUBLE_EQ(least_seconds(gpu(), {.resource = Resource::peers, .bytes = 1e11}), 1)
      << "a world of one copies";
  EXPECT_EQ(foreseen_ns(gpu(), {.resource = Resource::peers, .bytes = 1e11}), 1'000'001'000);
}

TEST(Demand, ACollectiveTakesWhatARankSendsAndALatencyForEachHopOfItsRing) {
  Machine machine = gpu();
  const Demand demand{
      .resource = Resource::peers, .bytes = 3e9, .moved_bytes = 500'000'000, .ranks = 8};
  EXPECT_EQ(foreseen_ns(machine, demand), 500'001'000) << "no latency is known";
  machine.peer_latency = assumed(1e-5);
  EXPECT_EQ(foreseen_ns(machine, demand), 500'071'000) << "seven hops on one host";
  machine.hosts = 2;
  machine.network_latency = assumed(1e-3);
  EXPECT_EQ(foreseen_ns(machine, demand), 501'061'000) << "one of seven hops is between hosts";
  machine.hosts = 16;
  EXPECT_EQ(foreseen_ns(machine, demand), 507'001'000) << "a rank on each of eight hosts";
  Machine cpu = cpu_machine(1);
  cpu.peer_latency = cpu.network_latency = assumed(1);
  cpu.peer_rate = assumed(1e9);
  EXPECT_EQ(foreseen_ns(cpu, demand), 3'000'002'000) << "ranks read one another's memory";
  cpu.hosts = 2;
  EXPECT_EQ(foreseen_ns(cpu, demand), 7'500'002'000);
}

TEST(Demand, ACpuThatPlaysTheDeviceCopiesInItsMemory) {
  Machine cpu = cpu_machine(1);
  const Demand upload{.resource = Resource::upload, .moved_bytes = 1'000'000'000};
  EXPECT_EQ(least_seconds(cpu, upload), 0) << "all is assumed";
  cpu.device.bytes_per_second = measured(1e10);
  EXPECT_DOUBLE_EQ(least_seconds(cpu, upload), 0.2);
  EXPECT_EQ(foreseen_ns(cpu, upload), 125'002'000) << "as links are assumed";
}

TEST(Demand, ATypeWithoutARateIsMultipliedInFp32) {
  EXPECT_EQ(foreseen_ns(gpu(), {.type = DType::i32, .flops = 1e12}), 2'000'001'000);
}

TEST(Demand, AttentionReachesItsOwnShareOfThePeakWhereItIsKnown) {
  Machine machine = gpu();
  const auto seconds_of = [&](const kernels::Operation& operation) {
    const Demand demand{.type = DType::bf16, .flops = 1e13, .operation = operation.name};
    EXPECT_DOUBLE_EQ(least_seconds(machine, demand), 1);
    return 1e-9 * static_cast<double>(guessed_ns(machine, demand) - 1000);
  };
  EXPECT_DOUBLE_EQ(seconds_of(kernels::attention_operation()), 2) << "not known: as products";
  machine.device.attention_efficiency = assumed(0.25);
  EXPECT_DOUBLE_EQ(seconds_of(kernels::attention_operation()), 4);
  EXPECT_DOUBLE_EQ(seconds_of(kernels::attention_backward_operation()), 4);
  EXPECT_DOUBLE_EQ(seconds_of(kernels::linear_operation()), 2);
}

TEST(Demand, WhatMovesBytesReachesItsShareOfTheRateAndBoundsStayAtThePeak) {
  Machine machine = gpu();
  machine.device.memory_efficiency = assumed(0.8);
  machine.link.efficiency = assumed(0.5);
  machine.collective_efficiency = assumed(0.25);
  const struct {
    Demand demand;
    double share;
  } rows[] = {
      {{.bytes = 1e11}, 0.8},
      {{.resource = Resource::peers, .bytes = 1e11}, 0.8},  // a copy, in a world of one
      {{.resource = Resource::peers, .moved_bytes = 1'000'000'000}, 0.25},
      {{.resource = Resource::upload, .moved_bytes = 20'000'000'000}, 0.5},
      {{.resource = Resource::download, .moved_bytes = 10'000'000'000}, 0.5},
      {{.resource = Resource::disk_read, .moved_bytes = 5'000'000'000}, 1},
      {{.resource = Resource::disk_write, .moved_bytes = 2'000'000'000}, 1},
      {{.resource = Resource::host, .bytes = 4e10}, 1},
  };
  for (const auto& [demand, share] : rows) {
    SCOPED_TRACE(static_cast<int>(demand.resource));
    EXPECT_DOUBLE_EQ(least_seconds(machine, demand), 1);
    EXPECT_NEAR(static_cast<double>(guessed_ns(machine, demand)), 1e9 / share + 1000, 1);
  }
  Machine cpu = cpu_machine(1);
  cpu.peer_rate = assumed(1e9);
  cpu.collective_efficiency = assumed(0.5);
  EXPECT_EQ(guessed_ns(cpu, {.resource = Resource::peers, .bytes = 1e9, .moved_bytes = 1}),
            2'000'002'000)
      << "ranks read one another's memory";
}

}  // namespace
}  // namespace strata::machine
