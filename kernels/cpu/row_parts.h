// The loop of element-wise kernels: it cuts tensors into pieces of rows that a core keeps in its
// first-level cache, the same pieces whatever the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>

#include "kernels/cpu/thread_pool.h"
#include "kernels/device/tensor.h"

namespace strata::kernels {

constexpr std::int64_t kRowPartElements = 1024;  ///< most elements of a part

/// Columns [column, column + count) of a row.
struct RowPart {
  std::int64_t row;
  std::int64_t column;
  std::int64_t count;
};

/// A body gets the part of each input as fp32, and room for that of each output.
using RowPartBody =
    std::function<void(const float* const* inputs, float* const* outputs, const RowPart& part)>;

void for_each_row_part_of(ThreadPool& pool, std::initializer_list<Tensor> inputs,
                          std::initializer_list<Tensor> outputs, const RowPartBody& body);

/// Calls `body` for all parts, on all threads of `pool`. All tensors have the same rows and
/// columns and any float type; an output may be the same view as an input. At most four inputs and
/// outputs each. Allocates nothing.
template <typename Body>
void for_each_row_part(ThreadPool& pool, std::initializer_list<Tensor> inputs,
                       std::initializer_list<Tensor> outputs, const Body& body) {
  for_each_row_part_of(pool, inputs, outputs, std::cref(body));
}

/// Returns a view of columns [first, first + count) of a 2-D tensor.
Tensor columns_of(const Tensor& tensor, std::int64_t first, std::int64_t count);

}  // namespace strata::kernels
