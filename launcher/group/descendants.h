// Processes that ranks leave behind. mlaunch is the subreaper: orphans become its children.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <set>

namespace strata::launcher {

/// Makes this process the new parent of orphans of the ranks.
void become_subreaper();

/// Returns the direct children of this process, zombies included. Processes may come and go.
std::set<pid_t> children(const std::filesystem::path& processes = "/proc");

/// Number of processes that the kernel killed for lack of memory since boot; 0: not known.
std::int64_t out_of_memory_kills();

}  // namespace strata::launcher
