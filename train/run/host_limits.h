// Compares what plans need with the memory that this host may give.
#pragma once

#include <cstdint>
#include <string>

#include "machine/host_memory.h"
#include "train/config/options.h"

namespace strata::train {

/// The limit that --host-memory sets for ranks whose device is the CPU: the arena is then also host
/// memory, unless --device-memory limits it. 0: no such limit.
std::int64_t host_limit_on_cpu(const OffloadOptions& options);

/// Says with the amounts that `ranks` arenas of `arena_bytes` do not fit into `free_bytes`; empty
/// if they do (0: unknown, nothing is refused). memory_advice.h says what to change.
std::string lacking_host_memory(std::int64_t arena_bytes, int ranks,
                                std::int64_t free_bytes = machine::available_host_bytes());

}  // namespace strata::train
