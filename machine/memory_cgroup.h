// The limit that a control group sets on this process's memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace strata::machine {

struct MemoryCgroup {
  std::int64_t limit_bytes = 0;
  /// The limit less the memory in use; page cache does not count, since the kernel can drop it.
  std::int64_t left_bytes = 0;
  /// The smallest limit of all groups, which may be that of another one.
  std::int64_t least_limit_bytes = 0;
};

/// Returns the group that leaves least, of all from this process's own up to the root, in versions
/// 1 and 2; nothing when none has a limit. `own_groups` is a file like /proc/self/cgroup.
std::optional<MemoryCgroup> tightest_memory_cgroup(
    const std::string& own_groups = "/proc/self/cgroup",
    const std::string& hierarchies = "/sys/fs/cgroup");

}  // namespace strata::machine
