// Computes statistics of the values of tensors.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "train/inspect/tensor_folder.h"

namespace strata::train {

/// Statistics of the finite elements, in fp64. The order of all sums follows from type and shape
/// alone, so that the same tensor gives the same bits.
struct TensorStatistics {
  double least = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
  double squares = 0;  ///< sum of squares
  std::int64_t finite = 0;
  std::int64_t not_finite = 0;  ///< infinities and NaN
  std::int64_t zeros = 0;       ///< of either sign

  /// Adds `other`, which is of later elements.
  void add(const TensorStatistics& other);
  [[nodiscard]] double mean() const;  ///< NaN without finite elements
  [[nodiscard]] double norm() const;  ///< L2
};

/// Statistics of elements of one type.
TensorStatistics statistics_of(DType dtype, std::span<const std::byte> elements);

/// Statistics of all tensors, parallel to folder.tensors(); those of unknown types stay empty.
std::vector<TensorStatistics> statistics_of(const TensorFolder& folder, int threads);

}  // namespace strata::train
