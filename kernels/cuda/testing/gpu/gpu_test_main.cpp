// Runs tests on the first GPU. Without one it says why and ends with the code of a skipped test.
#include <gtest/gtest.h>

#include <cstdio>

#include "kernels/cuda/open_device.h"
#include "kernels/cuda/testing/gpu/device_runner.h"

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  testing::InitGoogleTest(&argc, argv);
  const strata::cuda::DeviceCount count = strata::cuda::count_devices();
  if (count.devices == 0) {
    std::printf("SKIPPED: no GPU to test on: %s\n", count.why_none.c_str());
    return kSkipped;
  }
  try {
    std::printf("on %s\n", strata::cuda::tested_gpu().description().c_str());
  } catch (const std::exception& error) {
    std::printf("cannot open the GPU: %s\n", error.what());
    return 1;
  }
  return RUN_ALL_TESTS();
}
