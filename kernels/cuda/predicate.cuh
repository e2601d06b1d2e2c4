// The predicate of a call (kernels/device/stream.h) inside a kernel.
#pragma once

#include "kernels/cuda/device.cuh"

namespace strata::cuda {

/// False: the kernel must not write. Ask after the loads of operands, so that the wait for this one
/// overlaps with theirs.
STRATA_DEVICE bool holds(const std::uint32_t* predicate) {
  return predicate == nullptr || *predicate != 0;
}

}  // namespace strata::cuda
