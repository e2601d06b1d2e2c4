// How the tensors of two folders differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/inspect/tensor_folder.h"

namespace strata::train {

/// How two tensors of one type and shape differ.
struct TensorDifference {
  std::int64_t elements = 0;  ///< whose bits differ
  /// |a - b| in fp64 of these; infinite where one of the two is not finite.
  double largest = 0;

  void add(const TensorDifference& other);
};

TensorDifference difference_of(DType dtype, std::span<const std::byte> a,
                               std::span<const std::byte> b);

/// Places in tensors() of the folders.
struct FolderDifference {
  struct Pair {
    std::size_t a = 0;
    std::size_t b = 0;
  };
  std::vector<std::size_t> only_a;
  std::vector<std::size_t> only_b;
  std::vector<Pair> other_form;               ///< type or shape differ: elements are not compared
  std::vector<Pair> compared;                 ///< in order of `a`
  std::vector<TensorDifference> differences;  ///< parallel to `compared`

  [[nodiscard]] bool same() const;
};

/// Tensors of the same name, both the model's or both the optimizer's. Throws DataError when one of
/// them has a type that cannot be read.
FolderDifference compare_folders(const TensorFolder& a, const TensorFolder& b, int threads);

}  // namespace strata::train
