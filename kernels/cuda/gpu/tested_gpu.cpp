// The CUDA backend under test, on a GPU.
#include <cstdlib>

#include "kernels/cuda/gpu/device_runner.h"
#include "kernels/cuda/gpu/tested_device.h"
#include "kernels/cuda/open_device.h"

namespace strata::cuda {

bool tests_own_kernels() { return std::getenv("STRATA_OWN_KERNELS") != nullptr; }

kernels::Device& tested_gpu() {
  // Never destroyed: at exit the libraries that it uses may already be gone.
  static kernels::Device& device =
      *open_device(0, tests_own_kernels() ? Libraries::left_out : Libraries::used).release();
  return device;
}

kernels::Device& tested_device() { return tested_gpu(); }

}  // namespace strata::cuda

namespace strata::kernels {

// Twice, so that tests which compare runners see whether bits differ from run to run.
std::vector<NamedRunner> all_runners() {
  return {{"GPU", cuda::device_runner(cuda::tested_gpu())},
          {"GPU again", cuda::device_runner(cuda::tested_gpu())}};
}

bool runs_on_gpu() { return true; }

Runner any_runner() { return cuda::device_runner(cuda::tested_gpu()); }

}  // namespace strata::kernels
