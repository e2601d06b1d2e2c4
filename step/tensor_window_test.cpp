#include "step/tensor_window.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace strata::step {
namespace {

using Runs = std::vector<WindowRun>;

TEST(TensorWindow, OfARangeIsOneRunOfTensorAndStorage) {
  const TensorWindow window{.first = 70, .elements = 1000};
  EXPECT_EQ(runs_of(window), (Runs{{0, 70, 0, 1000}}));
  EXPECT_EQ(runs_of(window, 10, 20), (Runs{{0, 80, 10, 20}}));
  EXPECT_EQ(runs_of(window, 10, 0), Runs{});
  EXPECT_EQ(storage_extent(window), 1000);
  EXPECT_EQ(storage_extent({}), 0);
}

/// Makes a window of columns [3, 7) of a [., 10], from the second element of its row 1 on.
TensorWindow columns_of_ten(std::int64_t storage_columns) {
  return {.first = 5,
          .elements = 9,
          .first_column = 3,
          .columns = 4,
          .tensor_columns = 10,
          .storage_columns = storage_columns};
}

TEST(TensorWindow, OfColumnsIsARunPerRow) {
  const TensorWindow window = columns_of_ten(4);
  EXPECT_EQ(runs_of(window), (Runs{{0, 14, 0, 3}, {3, 23, 3, 4}, {7, 33, 7, 2}}));
  EXPECT_EQ(storage_extent(window), 9);
}

TEST(TensorWindow, OfAStorageWithLongerRowsLeavesOutWhatLiesBetweenThem) {
  const TensorWindow window = columns_of_ten(6);
  EXPECT_EQ(runs_of(window), (Runs{{0, 14, 0, 3}, {3, 23, 5, 4}, {7, 33, 11, 2}}));
  EXPECT_EQ(storage_extent(window), 13);
  const TensorWindow whole_rows{
      .elements = 8, .columns = 4, .tensor_columns = 4, .storage_columns = 6};
  EXPECT_EQ(runs_of(whole_rows), (Runs{{0, 0, 0, 4}, {4, 4, 6, 4}}));
}

TEST(TensorWindow, IsTheSameReadInAnyParts) {
  for (const std::int64_t storage_columns : {4, 6}) {
    const TensorWindow window = columns_of_ten(storage_columns);
    std::vector<std::int64_t> whole, parts;
    for (const WindowRun& run : runs_of(window))
      for (std::int64_t i = 0; i < run.elements; ++i)
        whole.insert(whole.end(), {run.tensor_element + i, run.storage_element + i});
    for (std::int64_t first = 0; first < window.elements; first += 2)
      for (const WindowRun& run :
           runs_of(window, first, std::min<std::int64_t>(2, window.elements - first)))
        for (std::int64_t i = 0; i < run.elements; ++i)
          parts.insert(parts.end(), {run.tensor_element + i, run.storage_element + i});
    EXPECT_EQ(parts, whole);
  }
}

}  // namespace
}  // namespace strata::step
