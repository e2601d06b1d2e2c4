#include "machine/machine.h"

#include <gtest/gtest.h>

#include "machine/hardware_table.h"

namespace strata::machine {
namespace {

using kernels::DeviceCapabilities;

TEST(Machine, ACoreComputesInProportionToItsVectors) {
  EXPECT_EQ(cpu_machine(3, 512).device.fp32_flops, 6e11);
  EXPECT_EQ(cpu_machine(3, 256).device.fp32_flops, 3e11);
  EXPECT_EQ(cpu_machine(3, 128).device.fp32_flops, 1.5e11);
}

TEST(Machine, WhatMovesBytesDoesNotDependOnVectors) {
  const Machine wide = cpu_machine(2, 512), narrow = cpu_machine(2, 256);
  EXPECT_EQ(wide.device.bytes_per_second, narrow.device.bytes_per_second);
  EXPECT_EQ(wide.link, narrow.link);
  EXPECT_EQ(wide.peer_rate, narrow.peer_rate);
  EXPECT_EQ(wide.memory, narrow.memory);
}

TEST(Machine, ADeviceOfItsOwnIsNoCpu) {
  DeviceCapabilities gpu;
  gpu.backend = DeviceCapabilities::Backend::cuda;
  EXPECT_EQ(typical_machine(gpu, 128), typical_machine(gpu, 512));
  EXPECT_FALSE(typical_machine(gpu).host_is_device());
  EXPECT_TRUE(cpu_machine(2).host_is_device());
  EXPECT_EQ(cpu_machine(2).device.capabilities.workers, 2);
}

TEST(Machine, AKnownGpuHasItsOwnRatesAndWhatTheDriverSays) {
  DeviceCapabilities found;
  found.backend = DeviceCapabilities::Backend::cuda;
  found.architecture = 90;
  found.cudnn = false;
  const Machine h200 = gpu_machine("NVIDIA H200", found);
  EXPECT_EQ(h200.device.capabilities, found);
  EXPECT_EQ(h200.device.names, std::vector<std::string>{"NVIDIA H200"});
  EXPECT_DOUBLE_EQ(h200.device.flops(DType::bf16), 989.4e12);
  EXPECT_DOUBLE_EQ(h200.device.flops(DType::f16), 989.4e12);
  EXPECT_DOUBLE_EQ(h200.device.flops(DType::f32), 66.9e12);
  EXPECT_EQ(h200.device.fp32_flops.source, Source::data_sheet);
  EXPECT_DOUBLE_EQ(h200.device.bytes_per_second, 4.8e12);
  EXPECT_FALSE(h200.device.flops(DType::i32).known());
}

TEST(Machine, AnUnknownGpuIsTakenForATypicalOne) {
  DeviceCapabilities found;
  found.backend = DeviceCapabilities::Backend::cuda;
  Machine typical = typical_machine(found);
  typical.device.names = {"NVIDIA H2"};
  EXPECT_EQ(gpu_machine("NVIDIA H2", found), typical);
  EXPECT_EQ(typical.device.fp32_flops.source, Source::assumed);
}

TEST(Machine, RanksOfAHostShareItsDrives) {
  Machine machine = cpu_machine(2);
  machine.disk.read_rate = measured(8e9);
  const Machine share = share_of_rank(machine, 4);
  EXPECT_EQ(share.disk.read_rate, measured(2e9));
  EXPECT_EQ(share.disk.write_rate, machine.disk.write_rate.value / 4);
  EXPECT_EQ(share.memory.bytes_per_second, machine.memory.bytes_per_second.value / 4);
  EXPECT_EQ(share.device, cpu_machine(1).device) << "no rank has less than a core";
  EXPECT_EQ(share_of_rank(cpu_machine(8), 4).device, cpu_machine(2).device);
  const Machine eight = find_hardware("8xh100").value();
  EXPECT_EQ(share_of_rank(eight, 8).device, eight.device) << "each has its own";
  EXPECT_EQ(share_of_rank(eight, 8).peer_rate, eight.peer_rate);
  Machine hosts = find_hardware("16x8xh100").value();
  hosts.network_rate.value = hosts.peer_rate.value / 2;
  EXPECT_EQ(share_of_rank(hosts, 8).peer_rate, hosts.network_rate.value) << "all pass one ring on";
}

}  // namespace
}  // namespace strata::machine
