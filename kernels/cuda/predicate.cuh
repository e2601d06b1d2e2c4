// The test of a call's predicate (kernels/device/stream.h) inside a kernel.
#pragma once

#include "kernels/cuda/device.cuh"

namespace strata::cuda {

/// Returns false if the kernel must not write. Call it after the loads of operands, so that its own
/// load overlaps with theirs.
STRATA_DEVICE bool holds(const std::uint32_t* predicate) {
  return predicate == nullptr || *predicate != 0;
}

}  // namespace strata::cuda
