// The limit that a control group puts on this process's memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace strata::machine {

struct MemoryCgroup {
  std::int64_t limit_bytes = 0;
  /// The limit less what is in use; the page cache of files does not count, since it gives way.
  std::int64_t left_bytes = 0;
};

/// Of the groups that hold this process, from its own up to the root, the one that leaves least;
/// nothing when none has a limit. Versions 1 and 2. `own_groups` is a file like /proc/self/cgroup.
std::optional<MemoryCgroup> tightest_memory_cgroup(
    const std::string& own_groups = "/proc/self/cgroup",
    const std::string& hierarchies = "/sys/fs/cgroup");

}  // namespace strata::machine
