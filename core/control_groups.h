// Control groups (cgroups) of a process, versions 1 and 2, as /proc and /sys/fs/cgroup tell.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace strata {

struct ControlGroup {
  std::filesystem::path folder;
  int version = 2;  ///< 1: of the named controller; 2: of all
};

/// Returns the groups that `process_groups`, a file like /proc/self/cgroup, names for a controller
/// of version 1, and for version 2: of each hierarchy from the innermost one up to the root, which
/// is what a container may see alone. Folders need not exist. Empty where the file is missing.
std::vector<ControlGroup> control_groups(
    const std::filesystem::path& process_groups, std::string_view controller,
    const std::filesystem::path& hierarchies = "/sys/fs/cgroup");

}  // namespace strata
