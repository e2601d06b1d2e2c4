// Tells a process from others that have, or had, its number.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace strata::launcher {

/// Returns the clock ticks from the start of this host to that of the process; nullopt: it is gone,
/// or has ended and waits for its parent to notice. The folder is another one in tests.
std::optional<std::int64_t> process_start(pid_t pid,
                                          const std::filesystem::path& processes = "/proc");

/// True if a process of this host that began at `start` has not ended; nullopt: at any time.
bool goes_on(pid_t pid, std::optional<std::int64_t> start,
             const std::filesystem::path& processes = "/proc");

}  // namespace strata::launcher
