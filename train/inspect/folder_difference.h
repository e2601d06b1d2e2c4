// Compares the tensors of two folders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/inspect/tensor_folder.h"

namespace strata::train {

/// The difference of two tensors of one type and shape.
struct TensorDifference {
  std::int64_t elements = 0;  ///< number of elements whose bits differ
  /// The largest |a - b| of these in fp64; infinite if one of the two is not finite.
  double largest = 0;

  void add(const TensorDifference& other);
};

TensorDifference difference_of(DType dtype, std::span<const std::byte> a,
                               std::span<const std::byte> b);

/// The differences of two folders; numbers are indices in their tensors().
struct FolderDifference {
  struct Pair {
    std::size_t a = 0;
    std::size_t b = 0;
  };
  std::vector<std::size_t> only_a;
  std::vector<std::size_t> only_b;
  std::vector<Pair> other_form;               ///< type or shape differ; not compared further
  std::vector<Pair> compared;                 ///< sorted by `a`
  std::vector<TensorDifference> differences;  ///< parallel to `compared`

  [[nodiscard]] bool same() const;
};

/// Compares tensors of the same name, both the model's or both the optimizer's. Throws DataError if
/// one has a type that cannot be read.
FolderDifference compare_folders(const TensorFolder& a, const TensorFolder& b, int threads);

}  // namespace strata::train
