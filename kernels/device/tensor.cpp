#include "kernels/device/tensor.h"

namespace strata::kernels {

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < ndim_; ++i) text += (i == 0 ? "" : ", ") + std::to_string(extents_[i]);
  return text + "]";
}

std::string TensorType::to_string() const {
  std::string text = std::string(name_of(dtype)) + shape.to_string();
  if (!contiguous()) text += " stride " + std::to_string(row_stride);
  return text;
}

}  // namespace strata::kernels
