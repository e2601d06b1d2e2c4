// Matrix instructions by the type of their elements.
#pragma once

#include "kernels/cuda/element.cuh"

namespace strata::cuda {

/// Adds a * b to d, all fragments as mma_bf16 describes them. The first argument chooses the type.
STRATA_DEVICE void multiply_fragments(Bf16, float (&d)[4], const std::uint32_t (&a)[4],
                                      const std::uint32_t (&b)[2]) {
  mma_bf16(d, a, b);
}
STRATA_DEVICE void multiply_fragments(Half, float (&d)[4], const std::uint32_t (&a)[4],
                                      const std::uint32_t (&b)[2]) {
  mma_f16(d, a, b);
}

}  // namespace strata::cuda
