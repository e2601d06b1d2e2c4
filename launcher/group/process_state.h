// Reads from /proc and from control groups whether a process may run, and does.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace strata::launcher {

struct ProcessState {
  bool stopped = false;  ///< by a signal, or by its terminal
  bool frozen = false;  ///< in a frozen control group, as a scheduler or a container engine does it
  bool traced = false;  ///< a debugger is on it
  /// How often its first thread has left a core: each time that it is stopped anew, and never while
  /// it stays so. One that is frozen leaves it also for each signal that comes meanwhile.
  std::uint64_t switches = 0;
  std::string thaw = {};  ///< frozen: the shell's command that thaws the group

  [[nodiscard]] bool held() const { return stopped || frozen; }
};

/// Reads it; of a process that is gone, nothing is true, and nothing is counted. The folders are
/// others in tests.
ProcessState read_process_state(pid_t pid, const std::filesystem::path& processes = "/proc",
                                const std::filesystem::path& control_groups = "/sys/fs/cgroup");

}  // namespace strata::launcher
