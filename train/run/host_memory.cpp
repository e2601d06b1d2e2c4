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

void require_host_memory(std::int64_t arena_bytes, int ranks, std::int64_t free_bytes) {
  const std::int64_t needed_bytes = arena_bytes * ranks;
  if (free_bytes == 0 || needed_bytes <= free_bytes) return;
  const std::string each = format_bytes(static_cast<double>(arena_bytes));
  const std::string all = format_bytes(static_cast<double>(needed_bytes));
  throw OutOfMemory("out of memory: " +
                    (ranks == 1 ? "the one rank on this host plans " + each
                                : std::to_string(ranks) + " ranks on this host plan " + each +
                                      " each, " + all + " together") +
                    ", and " + format_bytes(static_cast<double>(free_bytes)) + " are free");
}

}  // namespace strata::train
