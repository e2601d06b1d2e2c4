// Scratch that CUDA kernels need, known without a device: planning asks here.
#pragma once

#include "kernels/operation.h"

namespace strata::cuda {

/// Bytes of workspace of one call of `operation`; 0 for those that need none.
std::int64_t workspace_bytes(std::string_view operation, kernels::TypeSpan inputs,
                             kernels::TypeSpan outputs, const kernels::Attributes& attributes,
                             const kernels::DeviceCapabilities& device);

}  // namespace strata::cuda
