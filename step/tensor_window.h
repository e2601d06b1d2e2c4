// Computes which elements of a tensor a rank has, and how they lie in its storage.
#pragma once

#include <cstdint>
#include <vector>

namespace strata::step {

/// Elements [first, first + elements) of a rectangle of a tensor, counted row by row. The tensor is
/// seen as a matrix, its leading dimension by all others; the rectangle is columns [first_column,
/// first_column + columns) of all its rows. If only `first` and `elements` are set, the window is a
/// range of the tensor itself, and lies in the storage without gaps.
struct TensorWindow {
  std::int64_t first = 0;
  std::int64_t elements = 0;
  std::int64_t first_column = 0;
  std::int64_t columns = 1;          ///< columns of the rectangle, at least 1
  std::int64_t tensor_columns = 1;   ///< elements from one row to the next in the tensor
  std::int64_t storage_columns = 1;  ///< elements from one row to the next in the storage
};

/// Elements of a window that are adjacent both in the tensor and in the storage.
struct WindowRun {
  std::int64_t element = 0;          ///< index of the first one among the elements asked for
  std::int64_t tensor_element = 0;   ///< its index in the tensor, row-major
  std::int64_t storage_element = 0;  ///< its index in the storage, from the window's first element
  std::int64_t elements = 0;
  bool operator==(const WindowRun&) const = default;
};

/// Returns the runs, in order, of elements [first, first + count) of a window, counted from its own
/// first one: one if the window is a range of the tensor and of the storage, else one per row.
std::vector<WindowRun> runs_of(const TensorWindow& window, std::int64_t first, std::int64_t count);

/// Returns the runs of the whole window.
std::vector<WindowRun> runs_of(const TensorWindow& window);

/// Returns the number of storage elements from the window's first to its last, gaps included.
std::int64_t storage_extent(const TensorWindow& window);

}  // namespace strata::step
