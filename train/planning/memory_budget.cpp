#include "train/planning/memory_budget.h"

#include <algorithm>

#include "train/planning/memory_target.h"

namespace strata::train {
namespace {

/// The part of a host's memory that arenas beside a device may take.
constexpr double kHostPart = 0.95;

/// Bytes that the host of a device has for arenas, whatever --host-memory says; 0: unknown.
std::int64_t host_beside_device(const MachineFound& found, const TrainOptions& options) {
  if (found.host_bytes <= 0) return 0;
  const std::int64_t taken =
      found.is_here ? process_bytes(options, found.machine) * found.local_ranks : 0;
  const std::int64_t left = std::max<std::int64_t>(1, found.host_bytes - taken);  // 0: unknown
  if (options.offload.host_memory_bytes != kUnlimitedMemory) return left;
  return std::max<std::int64_t>(1,
                                static_cast<std::int64_t>(kHostPart * static_cast<double>(left)));
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
  budget.host_bytes = on_host ? found.host_bytes : host_beside_device(found, options);
  budget.most_bytes = on_host ? found.host_bytes / found.local_ranks : found.device_bytes;
  budget.beside_bytes = on_host ? process_bytes(options, found.machine) : found.device_taken_bytes;
  // 0: neither the target nor the machine says how much there is.
  const std::int64_t target = target_bytes(options.target, budget.most_bytes, found.owner);
  const auto for_arena = [&] {
    return beside(target, budget.beside_bytes, options.target,
                  on_host ? "a process without any arena" : found.taken_by);
  };
  if (on_host)
    budget.host_bytes = target > 0 ? for_arena() * found.local_ranks : 0;
  else
    budget.device_bytes =
        std::min(options.offload.device_memory_bytes, target > 0 ? for_arena() : kUnlimitedMemory);
  if (const std::int64_t limit = options.offload.host_memory_bytes; limit != kUnlimitedMemory)
    budget.host_bytes = budget.host_bytes > 0 ? std::min(budget.host_bytes, limit) : limit;
  return budget;
}

}  // namespace strata::train
