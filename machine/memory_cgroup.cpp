#include "machine/memory_cgroup.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

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
  return MemoryCgroup{*limit, std::max<std::int64_t>(0, *limit - kept)};
}

/// True if the controllers of a line "N:controllers:/path" include memory; version 2 has none.
bool names_memory(std::string_view controllers) {
  for (std::size_t begin = 0; begin <= controllers.size();) {
    const std::size_t end = std::min(controllers.find(',', begin), controllers.size());
    if (controllers.substr(begin, end - begin) == "memory") return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

std::optional<MemoryCgroup> tightest_memory_cgroup(const std::string& own_groups,
                                                   const std::string& hierarchies) {
  std::optional<MemoryCgroup> tightest;
  std::ifstream file(own_groups);
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && !names_memory(controllers)) continue;
    const fs::path root = unified ? fs::path(hierarchies) : fs::path(hierarchies) / "memory";
    // The path in a container may be the host's and not visible; the root is then its own group.
    fs::path below = fs::path(line.substr(second + 1)).relative_path();
    for (;; below = below.parent_path()) {
      const auto found = limit_of(root / below, unified ? kSecond : kFirst);
      if (found && (!tightest || found->left_bytes < tightest->left_bytes)) tightest = found;
      if (below.empty()) break;
    }
  }
  return tightest;
}

}  // namespace strata::machine
