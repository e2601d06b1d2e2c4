#include "train/run/host_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "core/error.h"
#include "train/engine/memory_report.h"

namespace strata::train {
namespace {

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

std::int64_t meminfo_available() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  std::int64_t kib = 0;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kib * 1024;
  }
  return kUnknown;
}

std::int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : kUnknown;  // "max" and missing files are no limit
}

std::int64_t cgroup_left() {
  const std::int64_t limit = number_in("/sys/fs/cgroup/memory.max");
  const std::int64_t used = number_in("/sys/fs/cgroup/memory.current");
  return limit == kUnknown || used == kUnknown ? kUnknown : limit - used;
}

}  // namespace

std::int64_t available_host_bytes() {
  const std::int64_t bytes = std::min(meminfo_available(), cgroup_left());
  return bytes == kUnknown ? 0 : bytes;
}

std::int64_t peak_resident_bytes() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return usage.ru_maxrss * 1024;
}

void require_host_memory(std::int64_t arena_bytes, int ranks) {
  const std::int64_t free_bytes = available_host_bytes();
  if (free_bytes == 0 || arena_bytes * ranks <= free_bytes) return;
  throw OutOfMemory("device", static_cast<std::uint64_t>(arena_bytes * ranks),
                    static_cast<std::uint64_t>(free_bytes),
                    std::to_string(ranks) + " ranks on this host plan " +
                        format_bytes(static_cast<double>(arena_bytes)) +
                        " each; use a smaller --micro-batch or --sequence-length, "
                        "--activation-checkpointing, a higher --zero stage, or fewer ranks here");
}

}  // namespace strata::train
