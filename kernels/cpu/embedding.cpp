#include "kernels/ops/embedding.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/float_rows.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/cpu/ranges.h"
#include "kernels/cpu/row_parts.h"

namespace strata::kernels {
namespace {

constexpr std::int64_t kColumnsPerTask = 128;
constexpr std::int64_t kRowsPerTask = 64;

void add_into(float* sum, const float* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += from[i];
}

/// Starts the gradient with the existing one, or with zero; does nothing if that one is in place.
void start_gradient(ThreadPool& pool, const Tensor* existing, const Tensor& to) {
  if (existing != nullptr && existing->data == to.data) return;
  const auto row_bytes = static_cast<std::size_t>(to.cols() * size_of(to.dtype()));
  for_each_range(&pool, to.rows(), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      if (existing == nullptr)
        std::memset(element(to, r, 0), 0, row_bytes);
      else
        std::memcpy(element(to, r, 0), element(*existing, r, 0), row_bytes);
  });
}

/// Adds the rows of dx that keys (id, row) in [first, last), all of one id, name to the id's row.
void add_rows(const std::uint64_t* first, const std::uint64_t* last, const Tensor& dx,
              const Tensor& to, std::int64_t column, std::int64_t count) {
  float sum[kColumnsPerTask], buffer[kColumnsPerTask];
  std::fill_n(sum, count, 0.0f);
  for (const std::uint64_t* key = first; key < last; ++key) {
    const auto row = static_cast<std::int64_t>(*key & 0xffffffffu);
    add_into(sum, floats_of(dx, row, column, count, buffer), count);
  }
  const auto id = static_cast<std::int64_t>(*first >> 32);
  const float* before = floats_of(to, id, column, count, buffer);
  float* after = floats_for(to, id, column, buffer);
  for (std::int64_t i = 0; i < count; ++i) after[i] = before[i] + sum[i];
  put_floats(after, to, id, column, count);
}

}  // namespace

void embedding_kernel(Stream& stream, const KernelCall& call) {
  const Tensor &table = call.inputs[1], &x = call.outputs[0];
  const auto* ids = call.inputs[0].row<std::int32_t>();
  const Tensor* positions = call.inputs.size() == 3 ? &call.inputs[2] : nullptr;
  const std::int64_t sequence = call.attributes.integer("sequence");
  const auto body = [&](const float* const*, float* const* out, const RowPart& part) {
    const std::int32_t id = ids[part.row];
    STRATA_CHECK(id >= 0 && id < table.rows(), "token", id, "of", table.rows());
    load_floats(element(table, id, part.column), table.dtype(), out[0], part.count);
    if (positions == nullptr) return;
    float buffer[kRowPartElements];
    add_into(out[0], floats_of(*positions, part.row % sequence, part.column, part.count, buffer),
             part.count);
  };
  for_each_row_part(cpu(stream).pool(), {}, {x}, body);
}

void embedding_backward_kernel(Stream& stream, const KernelCall& call) {
  const Tensor &dx = call.inputs[1], &to = call.outputs[0];
  const auto* ids = call.inputs[0].row<std::int32_t>();
  ThreadPool& pool = cpu(stream).pool();
  start_gradient(pool, call.inputs.size() == 3 ? &call.inputs[2] : nullptr, to);

  // Sorting by id, then row, brings each id's rows together, in order.
  auto* keys = reinterpret_cast<std::uint64_t*>(call.workspace.data());
  for (std::int64_t n = 0; n < dx.rows(); ++n) {
    STRATA_CHECK(ids[n] >= 0 && ids[n] < to.rows(), "token", ids[n], "of", to.rows());
    keys[n] = static_cast<std::uint64_t>(ids[n]) << 32 | static_cast<std::uint64_t>(n);
  }
  std::uint64_t* const end = keys + dx.rows();
  std::sort(keys, end);

  for_each_range(&pool, to.cols(), kColumnsPerTask, [&](std::int64_t column, std::int64_t stop) {
    for (std::uint64_t* first = keys; first < end;) {
      std::uint64_t* last = first + 1;
      while (last < end && *last >> 32 == *first >> 32) ++last;
      add_rows(first, last, dx, to, column, stop - column);
      first = last;
    }
  });
}

void position_backward_kernel(Stream& stream, const KernelCall& call) {
  const Tensor& dx = call.inputs[0];
  const std::int64_t sequence = call.attributes.integer("sequence");
  const auto body = [&](const float* const*, float* const* out, const RowPart& part) {
    std::fill_n(out[0], part.count, 0.0f);
    if (part.row >= sequence) return;
    float buffer[kRowPartElements];
    for (std::int64_t row = part.row; row < dx.rows(); row += sequence)
      add_into(out[0], floats_of(dx, row, part.column, part.count, buffer), part.count);
  };
  for_each_row_part(cpu(stream).pool(), {}, {call.outputs[0]}, body);
}

}  // namespace strata::kernels
