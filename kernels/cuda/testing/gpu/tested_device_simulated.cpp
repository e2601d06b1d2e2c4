#include "kernels/cuda/testing/gpu/tested_device.h"
#include "kernels/cuda/testing/simulated/simulated_device.h"

namespace strata::cuda {

kernels::Device& tested_device() {
  static SimulatedDevice device(ThreadOrder::shuffled);
  return device;
}

}  // namespace strata::cuda
