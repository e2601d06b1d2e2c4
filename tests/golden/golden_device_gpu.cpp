#include "kernels/cuda/open_device.h"
#include "kernels/cuda/testing/gpu/device_runner.h"
#include "tests/golden/golden_device.h"

namespace strata::tests {

std::unique_ptr<kernels::Device> golden_device(GoldenOrder) {
  return cuda::open_device(
      0, cuda::tests_own_kernels() ? cuda::Libraries::left_out : cuda::Libraries::used);
}

}  // namespace strata::tests
