#include "kernels/device/tensor.h"

#include <fmt/format.h>

namespace strata::kernels {

std::string Shape::to_string() const {
  return fmt::format("[{}]", fmt::join(extents_.begin(), extents_.begin() + ndim_, ", "));
}

std::string TensorType::to_string() const {
  return fmt::format("{}{}{}", name_of(dtype), shape.to_string(),
                     contiguous() ? "" : fmt::format(" stride {}", row_stride));
}

}  // namespace strata::kernels
