// The refusal of a plan that needs more memory than this host may give.
#pragma once

#include <cstdint>

#include "machine/host_memory.h"
#include "train/config/options.h"

namespace strata::train {

/// What --host-memory allows ranks whose device is the CPU: there the arena is host memory, too,
/// unless --device-memory limits it by itself. 0: no limit of this kind.
std::int64_t host_limit_on_cpu(const OffloadOptions& options);

/// Throws OutOfMemory with the amounts when `ranks` arenas of `arena_bytes` do not fit into
/// `free_bytes` (0: unknown, anything goes). What to change stands in memory_advice.h.
void require_host_memory(std::int64_t arena_bytes, int ranks,
                         std::int64_t free_bytes = machine::available_host_bytes());

}  // namespace strata::train
