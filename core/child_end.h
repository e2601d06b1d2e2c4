// Tells of the end of a child process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

#include "core/unique_fd.h"

namespace strata {

/// Returns a pidfd, which can be read from once the child has ended. Throws HostError if there is
/// no such child, or if the system refuses.
UniqueFd watch_child(pid_t child);

/// Waits until a child of this process has ended, and reaps it. Returns its status as waitpid has
/// it; nullopt: it runs on at `end`, as a killed process does that waits in the kernel. Throws
/// HostError if there is no such child, or if the system refuses.
std::optional<int> wait_for_child(pid_t child, std::chrono::steady_clock::time_point end);

}  // namespace strata
