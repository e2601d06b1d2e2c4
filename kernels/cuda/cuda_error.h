// Turns results of CUDA calls into exceptions. Only files of kernels/cuda and comm/nccl include it.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "core/error.h"

namespace strata::cuda {

/// Throws if `result` is an error: OutOfMemory for lack of memory, else HostError. The message has
/// the call and CUDA's name and text of the error, and says that earlier work may have caused it.
void check(cudaError_t result, const char* call);

/// Throws HostError, which names `kernel`, if the last launch was refused or earlier work failed.
void check_launch(const char* kernel);

/// Lets the kernel `entry` use `bytes` of dynamic shared memory, which may exceed 48 KiB. Throws
/// HostError when the device has less.
void allow_shared_memory(const void* entry, std::int64_t bytes);

}  // namespace strata::cuda

/// Calls and checks: STRATA_CUDA(cudaEventCreate(&event)).
#define STRATA_CUDA(call) ::strata::cuda::check((call), #call)
