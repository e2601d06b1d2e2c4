// Computes a LibraryProduct as a library of column-major matrices does, in plain loops over host
// memory. For tests only.
#pragma once

#include <cstddef>

#include "kernels/cuda/library_product.h"

namespace strata::cuda {

struct ColumnMajorOperands {
  const std::byte* first = nullptr;
  const std::byte* second = nullptr;
  std::byte* result = nullptr;
  const std::byte* bias = nullptr;
};

/// Computes the product, with sums in doubles, rounded once.
void column_major_product(const LibraryProduct& product, const ColumnMajorOperands& operands);

}  // namespace strata::cuda
