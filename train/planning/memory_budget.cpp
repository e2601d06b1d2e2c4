#include "train/planning/memory_budget.h"

#include <algorithm>

#include "train/planning/memory_target.h"

namespace strata::train {
namespace {

/// The part of a host's memory that arenas beside a device may take.
constexpr double kHostPart = 0.95;

/// Bytes that the host of a device has for arenas if --host-memory takes all; 0: unknown.
std::int64_t most_beside_device(const MachineFound& found, const TrainOptions& options) {
  if (found.host_bytes <= 0) return 0;
  const std::int64_t taken =
      found.is_here ? process_bytes(options, found.machine, found.local_ranks) * found.local_ranks
                    : 0;
  return std::max<std::int64_t>(1, found.host_bytes - taken);  // 0: unknown
}

/// Returns what --host-memory leaves of `most` bytes, or what is left to others without it.
std::int64_t host_beside_device(std::int64_t most, const TrainOptions& options) {
  if (most <= 0 || options.offload.host_memory_bytes != kUnlimitedMemory) return most;
  return std::max<std::int64_t>(1,
                                static_cast<std::int64_t>(kHostPart * static_cast<double>(most)));
}

}  // namespace

MemoryBudget budget_for(const MachineFound& found, const TrainOptions& options) {
  MemoryBudget budget;
  budget.seat = found.seat;
  budget.machine = found.machine;
  budget.local_ranks = found.local_ranks;
  budget.has_drive = found.has_drive;
  budget.disk_bytes = found.disk_bytes;
  const bool on_host = found.machine.host_is_device();
  if (!on_host) budget.most_host_bytes = most_beside_device(found, options);
  budget.host_bytes =
      on_host ? found.host_bytes : host_beside_device(budget.most_host_bytes, options);
  budget.most_bytes = on_host ? found.host_bytes / found.local_ranks : found.device_bytes;
  budget.beside_bytes = on_host ? bytes_beside_arenas(options, found.machine, found.local_ranks)
                                : found.device_taken_bytes;
  budget.foreseen_beside_bytes =
      on_host ? process_bytes(options, found.machine, found.local_ranks) : found.device_taken_bytes;
  budget.taken_by = on_host ? "a process without any arena" : found.taken_by;
  // 0: neither the target nor the machine says how much there is.
  const std::int64_t target = target_bytes(options.target, budget.most_bytes, found.owner);
  budget.leaves_no_arena = target > 0 && target <= budget.beside_bytes;
  if (target > 0) budget.target_bytes = std::max<std::int64_t>(1, target - budget.beside_bytes);
  if (on_host)
    budget.host_bytes = target > 0 ? budget.target_bytes * found.local_ranks : 0;
  else
    budget.device_bytes = std::min(options.offload.device_memory_bytes, budget.target_bytes);
  if (const std::int64_t limit = options.offload.host_memory_bytes; limit != kUnlimitedMemory)
    budget.host_bytes = budget.host_bytes > 0 ? std::min(budget.host_bytes, limit) : limit;
  return budget;
}

}  // namespace strata::train
