// Reads what the kernel tells of a process or a thread in its file `stat` (proc(5)).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace strata {

struct ProcessStat {
  char state = '?';                   ///< R runs, S sleeps, T stopped, Z ended and not waited for
  pid_t parent = -1;                  ///< -1: not told
  std::optional<std::int64_t> start;  ///< clock ticks since this host started; nullopt: not told
};

/// Reads the file `stat` of a folder /proc/PID or /proc/PID/task/ID; nullopt: it is gone, or is
/// none.
std::optional<ProcessStat> read_process_stat(const std::filesystem::path& folder);

}  // namespace strata
