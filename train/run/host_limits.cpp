#include "train/run/host_limits.h"

#include "core/format_bytes.h"

namespace strata::train {

std::int64_t host_limit_on_cpu(const OffloadOptions& options) {
  const bool limits = options.host_memory_bytes != kUnlimitedMemory &&
                      options.device_memory_bytes == kUnlimitedMemory;
  return limits ? options.host_memory_bytes : 0;
}

std::string lacking_host_memory(std::int64_t arena_bytes, int ranks, std::int64_t free_bytes) {
  const std::int64_t needed_bytes = arena_bytes * ranks;
  if (free_bytes == 0 || needed_bytes <= free_bytes) return "";
  const std::string each = format_bytes(arena_bytes);
  const std::string all = format_bytes(needed_bytes);
  return "out of memory: " +
         (ranks == 1 ? "the one rank on this host plans " + each
                     : std::to_string(ranks) + " ranks on this host plan " + each + " each, " +
                           all + " together") +
         ", and " + format_bytes(free_bytes) + " are free";
}

}  // namespace strata::train
