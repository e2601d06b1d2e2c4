#include "machine/memory_cgroup.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/control_groups.h"

namespace strata::machine {
namespace {

namespace fs = std::filesystem;

/// Names of the files of one cgroup version.
struct Version {
  const char* limit;
  const char* used;
  const char* cache[2];  ///< keys of memory.stat
};
constexpr Version kFirst{
    "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_active_file", "total_inactive_file"}};
constexpr Version kSecond{"memory.max", "memory.current", {"active_file", "inactive_file"}};

/// Version 1 writes a number about as large as this if there is no limit.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

/// Returns nothing for "max" and for missing files.
std::optional<std::int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

std::int64_t cached_bytes(const fs::path& group, const Version& version) {
  std::ifstream file(group / "memory.stat");
  std::string key;
  std::int64_t value = 0, sum = 0;
  while (file >> key >> value)
    if (key == version.cache[0] || key == version.cache[1]) sum += value;
  return sum;
}

std::optional<MemoryCgroup> limit_of(const fs::path& group, const Version& version) {
  const auto limit = number_in(group / version.limit);
  const auto used = number_in(group / version.used);
  if (!limit || !used || *limit >= kNoLimit) return std::nullopt;
  const std::int64_t kept = std::max<std::int64_t>(0, *used - cached_bytes(group, version));
  return MemoryCgroup{*limit, std::max<std::int64_t>(0, *limit - kept), *limit};
}

}  // namespace

std::optional<MemoryCgroup> tightest_memory_cgroup(const std::string& own_groups,
                                                   const std::string& hierarchies) {
  std::optional<MemoryCgroup> tightest;
  for (const ControlGroup& group : control_groups(own_groups, "memory", hierarchies)) {
    auto found = limit_of(group.folder, group.version == 2 ? kSecond : kFirst);
    if (!found) continue;
    const std::int64_t least =
        std::min(found->limit_bytes, tightest ? tightest->least_limit_bytes : found->limit_bytes);
    if (!tightest || found->left_bytes < tightest->left_bytes) tightest = found;
    tightest->least_limit_bytes = least;
  }
  return tightest;
}

}  // namespace strata::machine
