#include "step/tensor_window.h"

#include <algorithm>

namespace strata::step {
namespace {

/// Returns where element `number` of the rectangle is in a matrix of `columns` columns, counted
/// from the rectangle's first column.
std::int64_t place_of(const TensorWindow& window, std::int64_t number, std::int64_t columns) {
  return number / window.columns * columns + number % window.columns;
}

}  // namespace

std::vector<WindowRun> runs_of(const TensorWindow& window, std::int64_t first, std::int64_t count) {
  const bool flat =
      window.columns == window.tensor_columns && window.columns == window.storage_columns;
  const std::int64_t begins = place_of(window, window.first, window.storage_columns);
  std::vector<WindowRun> runs;
  for (std::int64_t element = 0; element < count; element += runs.back().elements) {
    const std::int64_t number = window.first + first + element;
    const std::int64_t rest = count - element;
    runs.push_back({element, window.first_column + place_of(window, number, window.tensor_columns),
                    place_of(window, number, window.storage_columns) - begins,
                    flat ? rest : std::min(window.columns - number % window.columns, rest)});
  }
  return runs;
}

std::vector<WindowRun> runs_of(const TensorWindow& window) {
  return runs_of(window, 0, window.elements);
}

std::int64_t storage_extent(const TensorWindow& window) {
  if (window.elements == 0) return 0;
  const WindowRun last = runs_of(window, window.elements - 1, 1).front();
  return last.storage_element + 1;
}

}  // namespace strata::step
