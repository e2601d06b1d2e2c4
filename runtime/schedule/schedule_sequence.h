// Finds serial orders: what a step would be if one task ran after another.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule_index.h"

namespace strata::runtime {

/// Orders all tasks: each of `work` (every work task, in the wanted order) after all that it still
/// needs, every `out` right after the last task that it needs. Ordered tasks keep the order of the
/// list. An `in` that no work needs comes at the end.
std::vector<int> serial_sequence(const ScheduleIndex& index, const std::vector<int>& work);

/// Returns serial orders to try: work in the order in which it would start if memory were
/// unlimited, without and with surviving copies, and in the order of the list.
std::vector<std::vector<int>> serial_sequences(const ScheduleIndex& index);

/// A serial order, and the tails that replace the index's.
struct ShakenOrder {
  std::vector<int> sequence;
  std::vector<std::int64_t> tail_ns;
};

/// Returns some further orders for problems of few tasks, none of them ordered: latest starts are
/// varied at random, but always in the same way.
std::vector<ShakenOrder> shaken_orders(const ScheduleIndex& index);

}  // namespace strata::runtime
