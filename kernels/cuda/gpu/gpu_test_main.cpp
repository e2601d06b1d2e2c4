// Runs tests on the first GPU. Without one it says why and ends with the code of a skipped test.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdio>

namespace {

constexpr int kSkipped = 77;

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int devices = 0;
  const cudaError_t result = cudaGetDeviceCount(&devices);
  if (result != cudaSuccess || devices == 0) {
    std::printf("SKIPPED: no GPU to test on: %s\n",
                result != cudaSuccess ? cudaGetErrorString(result) : "the driver lists none");
    return kSkipped;
  }
  cudaDeviceProp device{};
  if (cudaGetDeviceProperties(&device, 0) == cudaSuccess)
    std::printf(
        "on %s, compute capability %d.%d, %d multiprocessors, %zu MiB, L2 of %d KiB, %zu KiB of "
        "shared memory per block\n",
        device.name, device.major, device.minor, device.multiProcessorCount,
        device.totalGlobalMem >> 20, device.l2CacheSize >> 10, device.sharedMemPerBlockOptin >> 10);
  return RUN_ALL_TESTS();
}
