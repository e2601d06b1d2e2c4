#include "machine/host_memory.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include "machine/memory_cgroup.h"

namespace strata::machine {
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

}  // namespace

std::int64_t available_host_bytes() {
  std::int64_t bytes = meminfo_available();
  // An exhausted group counts as 1 byte, since 0 means unknown.
  if (const auto cgroup = tightest_memory_cgroup())
    bytes = std::min(bytes, std::max<std::int64_t>(1, cgroup->left_bytes));
  return bytes == kUnknown ? 0 : bytes;
}

std::int64_t peak_resident_bytes() {
  // getrusage would be wrong: its peak outlives exec, so a rank would show its Python parent's.
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmHWM:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  return 0;
}

}  // namespace strata::machine
