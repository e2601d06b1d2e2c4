// Which elements of a tensor a rank has, and how they lie in its storage: arithmetic alone.
#pragma once

#include <cstdint>
#include <vector>

namespace strata::step {

/// Elements [first, first + elements) of a rectangle of a tensor, counted row by row. The tensor is
/// seen as a matrix, its leading dimension by the rest; the rectangle is columns [first_column,
/// first_column + columns) of all its rows. As long as only `first` and `elements` are set, that is
/// a range of the tensor itself, which lies in the storage without gaps.
struct TensorWindow {
  std::int64_t first = 0;
  std::int64_t elements = 0;
  std::int64_t first_column = 0;
  std::int64_t columns = 1;          ///< of the rectangle, at least 1
  std::int64_t tensor_columns = 1;   ///< elements from a row to the next in the tensor
  std::int64_t storage_columns = 1;  ///< the same in the storage
};

/// Elements of a window that lie side by side in the tensor and in the storage.
struct WindowRun {
  std::int64_t element = 0;          ///< the first one's place among those asked for
  std::int64_t tensor_element = 0;   ///< in the tensor, row-major
  std::int64_t storage_element = 0;  ///< in the storage, from the window's first element
  std::int64_t elements = 0;
  bool operator==(const WindowRun&) const = default;
};

/// The runs of elements [first, first + count) of a window, counted from its own first one; in
/// order. One where the window is a range of the tensor and of the storage, else one per row.
std::vector<WindowRun> runs_of(const TensorWindow& window, std::int64_t first, std::int64_t count);

/// All of them.
std::vector<WindowRun> runs_of(const TensorWindow& window);

/// Elements of the storage from the window's first to its last, what lies between rows included.
std::int64_t storage_extent(const TensorWindow& window);

}  // namespace strata::step
