// Waits for the end of a child process, with a limit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

namespace strata {

/// Waits until a child of this process has ended, and reaps it. Returns its status as waitpid has
/// it; nullopt: it runs on at `end`, as a killed process does that waits in the kernel. Throws
/// HostError if there is no such child, or if the system refuses.
std::optional<int> wait_for_child(pid_t child, std::chrono::steady_clock::time_point end);

}  // namespace strata
