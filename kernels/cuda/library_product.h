// A matrix product as libraries of column-major matrices take it. What can change the choice of an
// algorithm stands here and nothing else, so that it is the key of that choice.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/cuda/matrix_product.h"

namespace strata::cuda {

/// result = op(first) op(second) + bias, added to the result when `accumulate`. All matrices are
/// column-major: element (i, j) lies at i + j * stride. op(first) is [m, k], op(second) [k, n], the
/// result [m, n]; a transposed operand is stored the other way round. The bias has m elements and
/// goes to every column. Sums are fp32.
struct LibraryProduct {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t first_stride = 0, second_stride = 0, result_stride = 0;  ///< elements
  /// Alignment of the addresses, bytes: the largest power of two up to kMostAlignment.
  int first_alignment = 0, second_alignment = 0, result_alignment = 0;
  bool first_transposed = false, second_transposed = false;
  DType operands = DType::f32, result = DType::f32;
  std::optional<DType> bias = {};
  int bias_alignment = 0;
  bool accumulate = false;

  auto operator<=>(const LibraryProduct&) const = default;
  /// "768x1024x3072 bf16 transposed by bf16 to fp32, bias bf16, accumulated, ...": for messages.
  [[nodiscard]] std::string to_string() const;
};

/// No instruction moves more at once. Telling higher alignments apart would make algorithms, and so
/// bits, depend on where an arena happens to put a tensor.
inline constexpr int kMostAlignment = 16;

/// The same product seen column-major: a row-major matrix is its transpose there, so the library's
/// first operand is our B, its second our A, and the result is C transposed. nullopt for types that
/// no library offers: operands of two types, a 16-bit result of another type than they.
std::optional<LibraryProduct> library_product(const MatrixProduct& product);

}  // namespace strata::cuda
