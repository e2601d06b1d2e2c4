// Whether a process may run, as /proc tells.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace strata::launcher {

struct ProcessState {
  bool held = false;    ///< stopped by a signal, or in a frozen control group
  bool traced = false;  ///< a debugger is on it
};

/// Reads it; of a process that is gone, nothing is true. `processes` is /proc, but for tests.
ProcessState read_process_state(pid_t pid, const std::filesystem::path& processes = "/proc");

}  // namespace strata::launcher
