#include "train/run/host_limits.h"

#include <fmt/core.h>

#include <string>

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
  return fmt::format(
      "out of memory: {}, and {} are free",
      ranks == 1 ? "the one rank on this host plans " + each
                 : fmt::format("{} ranks on this host plan {} each, {} together", ranks, each, all),
      format_bytes(free_bytes));
}

}  // namespace strata::train
