// What the values of tensors are like.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "train/inspect/tensor_folder.h"

namespace strata::train {

/// In fp64, over the finite elements. The order of all sums follows from type and shape alone: the
/// same tensor gives the same bits.
struct TensorStatistics {
  double least = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
  double squares = 0;  ///< their sum
  std::int64_t finite = 0;
  std::int64_t not_finite = 0;  ///< infinities and NaN
  std::int64_t zeros = 0;       ///< of either sign

  /// `other` is of elements after these.
  void add(const TensorStatistics& other);
  [[nodiscard]] double mean() const;  ///< NaN without finite elements
  [[nodiscard]] double norm() const;  ///< L2
};

/// Counts elements of one type.
TensorStatistics statistics_of(DType dtype, std::span<const std::byte> elements);

/// Counts all tensors', parallel to folder.tensors(); unknown types are left as of no elements.
std::vector<TensorStatistics> statistics_of(const TensorFolder& folder, int threads);

}  // namespace strata::train
