#include "kernels/cuda/testing/simulated/simulated_device.h"
#include "tests/golden/golden_device.h"

namespace strata::tests {

std::unique_ptr<kernels::Device> golden_device(GoldenOrder order) {
  using cuda::ThreadOrder;
  const ThreadOrder threads = order == GoldenOrder::forward    ? ThreadOrder::forward
                              : order == GoldenOrder::backward ? ThreadOrder::backward
                                                               : ThreadOrder::shuffled;
  return std::make_unique<cuda::SimulatedDevice>(threads);
}

}  // namespace strata::tests
