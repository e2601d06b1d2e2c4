// The gradient operand of an optimizer kernel, of any float type, as fp32.
#pragma once

#include <array>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/parameter_output.h"
#include "kernels/cpu/ranges.h"

namespace strata::kernels {

class GradientInput {
 public:
  /// Where a piece goes that is not fp32 already; 16 KiB, so it stays in the cache.
  using Buffer = std::array<float, kOptimizerPiece>;

  explicit GradientInput(const Tensor& gradient) : gradient_(gradient) {}

  /// Elements [begin, begin + count), at most kOptimizerPiece: in place, or converted in `buffer`.
  const float* read(std::int64_t begin, std::int64_t count, Buffer& buffer) const {
    if (gradient_.dtype() == DType::f32) return gradient_.row<const float>() + begin;
    convert_range(gradient_.dtype(), element(gradient_, 0, begin), DType::f32,
                  reinterpret_cast<std::byte*>(buffer.data()), count);
    return buffer.data();
  }

 private:
  const Tensor& gradient_;
};

}  // namespace strata::kernels
