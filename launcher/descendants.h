// What ranks leave behind. mlaunch is the subreaper: a process whose parent died becomes its child.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <set>

namespace strata::launcher {

/// Makes orphans of the ranks children of this process.
void become_subreaper();

/// Direct children of this process, zombies included. Processes come and go meanwhile.
std::set<pid_t> children(const std::filesystem::path& processes = "/proc");

/// How many processes the kernel has killed for lack of memory since boot; 0 when it does not tell.
std::int64_t out_of_memory_kills();

}  // namespace strata::launcher
