// Cuts element-wise work into tasks of a fixed size, so that bits and tasks depend on shapes alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/round_up.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/device/tensor.h"

namespace strata::kernels {

/// Elements per task: 128 KiB of fp32, which take many times as long as starting a task. It is a
/// multiple of 1,024.
inline constexpr std::int64_t kTaskElements = 32 * 1024;

/// Calls body(begin, end) or body(begin, end, worker) for ranges of `grain` elements (the
/// last may be shorter) that cover [0, count), on the calling thread if `pool` is null or there is
/// one range. Allocates nothing.
template <typename Body>
void for_each_range(ThreadPool* pool, std::int64_t count, std::int64_t grain, const Body& body) {
  const std::int64_t tasks = divide_up(count, grain);
  const auto task = [&](std::int64_t index, int worker) {
    const std::int64_t begin = index * grain, end = std::min(count, begin + grain);
    if constexpr (std::is_invocable_v<const Body&, std::int64_t, std::int64_t, int>)
      body(begin, end, worker);
    else
      body(begin, end);
  };
  if (pool == nullptr || tasks <= 1) {
    for (std::int64_t index = 0; index < tasks; ++index) task(index, 0);
  } else {
    pool->parallel_for(tasks, task);
  }
}

/// Returns the address of element (row, col).
inline std::byte* element(const Tensor& tensor, std::int64_t row, std::int64_t col) {
  return tensor.data + (row * tensor.row_stride() + col) * size_of(tensor.dtype());
}

/// Calls body(row, col, count) for runs that together cover the operands, which have one shape, and
/// are contiguous in each: pieces of the whole if no operand has gaps between rows, else rows.
template <typename Body>
void for_each_run(ThreadPool* pool, std::initializer_list<const Tensor*> operands,
                  const Body& body) {
  const Tensor& first = **operands.begin();
  const bool flat = std::all_of(operands.begin(), operands.end(),
                                [](const Tensor* t) { return t->type.contiguous(); });
  if (flat) {
    for_each_range(pool, first.elements(), kTaskElements,
                   [&](std::int64_t begin, std::int64_t end) { body(0, begin, end - begin); });
    return;
  }
  const std::int64_t cols = first.cols();
  const std::int64_t rows_per_task =
      std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(1, cols));
  for_each_range(pool, first.rows(), rows_per_task, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(row, 0, cols);
  });
}

}  // namespace strata::kernels
