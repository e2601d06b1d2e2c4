#include "kernels/cuda/probe.h"

#include "kernels/cuda/cuda_error.h"

namespace strata::cuda {
namespace {

__global__ void probe() {}

}  // namespace

bool probe_runs() {
  cudaFuncAttributes attributes{};
  const cudaError_t result =
      cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(probe));
  if (result == cudaErrorNoKernelImageForDevice || result == cudaErrorInvalidDeviceFunction ||
      result == cudaErrorUnsupportedPtxVersion) {
    (void)cudaGetLastError();
    return false;
  }
  check(result, "cudaFuncGetAttributes");
  return true;
}

}  // namespace strata::cuda
