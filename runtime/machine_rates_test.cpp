#include "runtime/machine_rates.h"

#include <gtest/gtest.h>

namespace strata::runtime {
namespace {

using kernels::DeviceCapabilities;

TEST(MachineRates, ACoreComputesInProportionToItsVectors) {
  DeviceCapabilities cpu;
  cpu.workers = 3;
  EXPECT_EQ(MachineRates::typical(cpu, 512).flops, 6e11);
  EXPECT_EQ(MachineRates::typical(cpu, 256).flops, 3e11);
  EXPECT_EQ(MachineRates::typical(cpu, 128).flops, 1.5e11);
}

TEST(MachineRates, WhatMovesBytesDoesNotDependOnVectors) {
  DeviceCapabilities cpu;
  MachineRates wide = MachineRates::typical(cpu, 512), narrow = MachineRates::typical(cpu, 256);
  EXPECT_EQ(wide.memory_bytes, narrow.memory_bytes);
  EXPECT_EQ(wide.upload_bytes, narrow.upload_bytes);
  EXPECT_EQ(wide.peer_bytes, narrow.peer_bytes);
  EXPECT_EQ(wide.host_bytes, narrow.host_bytes);
}

TEST(MachineRates, ADeviceOfItsOwnIsNoCpu) {
  DeviceCapabilities gpu;
  gpu.backend = DeviceCapabilities::Backend::cuda;
  EXPECT_EQ(MachineRates::typical(gpu, 128).flops, MachineRates::typical(gpu, 512).flops);
  EXPECT_EQ(MachineRates::typical(gpu).shared_cores, 0);
}

}  // namespace
}  // namespace strata::runtime
