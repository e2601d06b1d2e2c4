// Results of CUDA calls as exceptions. Included by files of kernels/cuda and comm/nccl only.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "core/error.h"

namespace strata::cuda {

/// Throws HostError, OutOfMemory where that is the reason, with the call and CUDA's name and text
/// for the error. Asynchronous errors of earlier work show up here too; the text says so.
void check(cudaError_t result, const char* call);

/// After a kernel launch: refused launches (shape, shared memory, architecture), named by `kernel`.
void check_launch(const char* kernel);

/// Lets `entry` use more than 48 KiB of dynamic shared memory. Throws HostError when the device has
/// less than `bytes`.
void allow_shared_memory(const void* entry, std::int64_t bytes);

}  // namespace strata::cuda

/// Calls and checks: STRATA_CUDA(cudaEventCreate(&event)).
#define STRATA_CUDA(call) ::strata::cuda::check((call), #call)
