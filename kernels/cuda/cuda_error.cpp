#include "kernels/cuda/cuda_error.h"

namespace strata::cuda {

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  (void)cudaGetLastError();  // clears it, so that the next launch is not blamed for it
  const std::string text = std::string(call) + " failed: " + cudaGetErrorName(result) + " (" +
                           cudaGetErrorString(result) + "; it may come from work enqueued before)";
  if (result == cudaErrorMemoryAllocation) throw OutOfMemory(text);
  throw HostError(text);
}

void check_launch(const char* kernel) {
  const cudaError_t result = cudaGetLastError();
  if (result == cudaSuccess) return;
  throw HostError(std::string("launch refused, or work enqueued before it failed: ") +
                  cudaGetErrorName(result) + " (" + cudaGetErrorString(result) + ") at " + kernel +
                  "; CUDA_LAUNCH_BLOCKING=1 or --check-device tell which");
}

void allow_shared_memory(const void* entry, std::int64_t bytes) {
  check(cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        "cudaFuncSetAttribute(cudaFuncAttributeMaxDynamicSharedMemorySize)");
}

}  // namespace strata::cuda
