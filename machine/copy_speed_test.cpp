#include "machine/copy_speed.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/cuda/testing/simulated/simulated_device.h"

namespace strata::machine {
namespace {

constexpr std::int64_t kBytes = std::int64_t{4} << 20;

TEST(CopySpeed, HostMemory) {
  EXPECT_GT(host_copy_rate(1, kBytes), 1e8);
  EXPECT_GT(host_copy_rate(3, kBytes), 1e8);
}

TEST(CopySpeed, LinksOfADeviceInAllDirections) {
  cuda::SimulatedDevice device(cuda::ThreadOrder::forward, kBytes);
  const Link rates = measure_links(device, kBytes);
  EXPECT_GT(rates.to_device, 0);
  EXPECT_GT(rates.to_host, 0);
  EXPECT_GT(rates.both_ways, 0);
  EXPECT_EQ(device.memory().free_bytes, kBytes) << "all was given back";
  EXPECT_THROW(measure_links(device, 2 * kBytes), OutOfMemory);
}

}  // namespace
}  // namespace strata::machine
