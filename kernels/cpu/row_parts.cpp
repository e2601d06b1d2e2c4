#include "kernels/cpu/row_parts.h"

#include <algorithm>

#include "core/round_up.h"
#include "kernels/cpu/float_rows.h"
#include "kernels/cpu/ranges.h"

namespace strata::kernels {
namespace {

constexpr std::int64_t kRowPartsPerTask = 16;
constexpr std::size_t kMostTensors = 4;

using TensorList = std::initializer_list<Tensor>;

void run_row_part(TensorList inputs, TensorList outputs, const RowPartBody& body,
                  const RowPart& part) {
  alignas(64) float buffers[2 * kMostTensors][kRowPartElements];
  const float* from[kMostTensors];
  float* to[kMostTensors];
  std::size_t count = 0;
  for (const Tensor& input : inputs) {
    from[count] = floats_of(input, part.row, part.column, part.count, buffers[count]);
    ++count;
  }
  count = 0;
  for (const Tensor& output : outputs) {
    to[count] = floats_for(output, part.row, part.column, buffers[kMostTensors + count]);
    ++count;
  }
  body(from, to, part);
  count = 0;
  for (const Tensor& output : outputs)
    put_floats(to[count++], output, part.row, part.column, part.count);
}

}  // namespace

void for_each_row_part_of(ThreadPool& pool, TensorList inputs, TensorList outputs,
                          const RowPartBody& body) {
  STRATA_CHECK(inputs.size() <= kMostTensors && outputs.size() <= kMostTensors);
  const std::int64_t rows = outputs.begin()->rows(), columns = outputs.begin()->cols();
  for (const TensorList& list : {inputs, outputs})
    for (const Tensor& tensor : list)
      STRATA_CHECK(tensor.rows() == rows && tensor.cols() == columns, tensor.type.to_string());
  const std::int64_t per_row = divide_up(columns, kRowPartElements);
  const std::int64_t parts = rows * per_row;
  for_each_range(&pool, parts, kRowPartsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t column = i % per_row * kRowPartElements;
      run_row_part(inputs, outputs, body,
                   {i / per_row, column, std::min(kRowPartElements, columns - column)});
    }
  });
}

Tensor columns_of(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  STRATA_CHECK(tensor.type.shape.ndim() == 2 && first + count <= tensor.cols());
  return {TensorType(tensor.dtype(), {tensor.rows(), count}, tensor.row_stride()),
          tensor.data + first * size_of(tensor.dtype())};
}

}  // namespace strata::kernels
