#include "train/run/host_limits.h"

#include <fmt/core.h>
#include <string>

#include "core/error.h"
#include "core/format_bytes.h"

namespace strata::train {

std::int64_t host_limit_on_cpu(const OffloadOptions& options) {
  const bool limits = options.host_memory_bytes != kUnlimitedMemory &&
                      options.device_memory_bytes == kUnlimitedMemory;
  return limits ? options.host_memory_bytes : 0;
}

void require_host_memory(std::int64_t arena_bytes, int ranks, std::int64_t free_bytes) {
  const std::int64_t needed_bytes = arena_bytes * ranks;
  if (free_bytes == 0 || needed_bytes <= free_bytes) return;
  const std::string each = format_bytes(arena_bytes);
  const std::string all = format_bytes(needed_bytes);
  throw OutOfMemory("out of memory: " +
                    (ranks == 1 ? "the one rank on this host plans " + each
                                : fmt::format("{} ranks on this host plan {} each, {} together",
                                              ranks, each, all)) +
                    ", and " + format_bytes(free_bytes) + " are free");
}

}  // namespace strata::train
