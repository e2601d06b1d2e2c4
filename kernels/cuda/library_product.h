// A matrix product as libraries of column-major matrices take it. It has exactly what an
// algorithm's choice may depend on, and so is the key of that choice.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/cuda/matrix_product.h"

namespace strata::cuda {

/// The product op(first) op(second) + bias; it is added to the result if `accumulate`, else
/// replaces it. All matrices are column-major: element (i, j) lies at i + j * stride. op(first) is
/// [m, k], op(second) [k, n], the result [m, n]; a transposed operand is stored the other way
/// round. The bias has m elements and is added to every column. Sums are fp32.
struct LibraryProduct {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t first_stride = 0, second_stride = 0, result_stride = 0;  ///< elements
  /// Alignment of the addresses in bytes: the largest power of two up to kMostAlignment.
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

/// The largest alignment that counts, in bytes; no instruction moves more at once. If higher ones
/// counted, algorithms, and so bits, would depend on a tensor's offset in its arena.
inline constexpr int kMostAlignment = 16;

/// Describes `product` in column-major terms. A row-major matrix is its transpose there, so the
/// first operand is our B, the second our A, and the result is C transposed. Returns nullopt for
/// types that no library offers: operands of two types, or a 16-bit result of another type.
std::optional<LibraryProduct> library_product(const MatrixProduct& product);

}  // namespace strata::cuda
