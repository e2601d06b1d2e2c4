// The GPU on which tests run, and their runners on it.
#include <cstdlib>

#include "kernels/cuda/open_device.h"
#include "kernels/cuda/testing/gpu/device_runner.h"
#include "kernels/cuda/testing/gpu/tested_device.h"

namespace strata::cuda {

bool tests_own_kernels() { return std::getenv("STRATA_OWN_KERNELS") != nullptr; }

kernels::Device& tested_gpu() {
  // The device is never destroyed, since the libraries that it uses may be gone at exit.
  static kernels::Device& device =
      *open_device(0, tests_own_kernels() ? Libraries::left_out : Libraries::used).release();
  return device;
}

kernels::Device& tested_device() { return tested_gpu(); }

}  // namespace strata::cuda

namespace strata::kernels {

// The GPU appears twice, so that tests that compare runners notice bits that differ between runs.
std::vector<NamedRunner> all_runners() {
  return {{"GPU", cuda::device_runner(cuda::tested_gpu())},
          {"GPU again", cuda::device_runner(cuda::tested_gpu())}};
}

bool runs_on_gpu() { return true; }

Runner any_runner() { return cuda::device_runner(cuda::tested_gpu()); }

}  // namespace strata::kernels
