#include "kernels/cuda/library_product.h"

#include <fmt/core.h>
#include <algorithm>

namespace strata::cuda {
namespace {

int alignment_of(const kernels::Tensor& tensor) {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  int alignment = 1;
  while (alignment < kMostAlignment && address % (2 * static_cast<unsigned>(alignment)) == 0)
    alignment *= 2;
  return alignment;
}

/// The row stride, or the columns of a single row, whose stride means nothing and must not count.
std::int64_t stride_of(const kernels::Tensor& tensor) {
  return tensor.rows() == 1 ? tensor.cols() : tensor.row_stride();
}

}  // namespace

std::optional<LibraryProduct> library_product(const MatrixProduct& product) {
  const DType operands = product.a.dtype(), result = product.c.dtype();
  const bool known = operands == DType::f32 || operands == DType::bf16 || operands == DType::f16;
  if (!known || product.b.dtype() != operands || (result != operands && result != DType::f32))
    return std::nullopt;
  LibraryProduct p{.m = product.n(),
                   .n = product.m(),
                   .k = product.k(),
                   .first_stride = stride_of(product.b),
                   .second_stride = stride_of(product.a),
                   .result_stride = stride_of(product.c),
                   .first_alignment = alignment_of(product.b),
                   .second_alignment = alignment_of(product.a),
                   .result_alignment = alignment_of(product.c),
                   .first_transposed = product.b_transposed,
                   .second_transposed = product.a_transposed,
                   .operands = operands,
                   .result = result,
                   .accumulate = product.accumulate};
  if (product.bias != nullptr) {
    p.bias = product.bias->dtype();
    p.bias_alignment = alignment_of(*product.bias);
  }
  return p;
}

std::string LibraryProduct::to_string() const {
  const auto operand = [this](bool transposed, std::int64_t stride, int alignment) {
    return fmt::format("{}{} stride {} aligned {}", name_of(operands),
                       transposed ? " transposed" : "", stride, alignment);
  };
  std::string text = fmt::format("{}x{}x{}: {} by {} to {} stride {} aligned {}", m, n, k,
                                 operand(first_transposed, first_stride, first_alignment),
                                 operand(second_transposed, second_stride, second_alignment),
                                 name_of(result), result_stride, result_alignment);
  if (bias) text += fmt::format(", bias {} aligned {}", name_of(*bias), bias_alignment);
  if (accumulate) text += ", accumulated";
  return text;
}

}  // namespace strata::cuda
