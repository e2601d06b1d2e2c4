#include "launcher/process_state.h"

#include <fstream>
#include <string>

namespace strata::launcher {

ProcessState read_process_state(pid_t pid, const std::filesystem::path& processes) {
  ProcessState state;
  const std::filesystem::path process = processes / std::to_string(pid);
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);) {
    // "State:\tT (stopped)"; under a debugger it is t, which TracerPid tells, too.
    if (line.starts_with("State:\tT")) state.held = true;
    if (line.starts_with("TracerPid:\t") && line != "TracerPid:\t0") state.traced = true;
  }
  std::string where;  // in the kernel; "0" while it runs
  std::ifstream(process / "wchan") >> where;
  if (where.find("freezer") != std::string::npos || where.find("refrigerator") != std::string::npos)
    state.held = true;
  return state;
}

}  // namespace strata::launcher
