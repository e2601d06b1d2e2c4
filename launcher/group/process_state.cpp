#include "launcher/group/process_state.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "core/control_groups.h"

namespace strata::launcher {
namespace {

/// What the kernel waits in tells nothing: a frozen thread stays where it was. A group freezes
/// those below it, too.
bool is_frozen(const std::filesystem::path& process, const std::filesystem::path& hierarchies) {
  return std::ranges::any_of(
      control_groups(process / "cgroup", "freezer", hierarchies), [](const ControlGroup& group) {
        std::string state;
        std::ifstream(group.folder / (group.version == 2 ? "cgroup.freeze" : "freezer.state")) >>
            state;
        return group.version == 2 ? state == "1" : state == "FROZEN" || state == "FREEZING";
      });
}

}  // namespace

ProcessState read_process_state(pid_t pid, const std::filesystem::path& processes,
                                const std::filesystem::path& control_groups) {
  ProcessState state;
  bool runs = false;
  const std::filesystem::path process = processes / std::to_string(pid);
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);) {
    runs |= line.starts_with("State:\tR");
    // "State:\tT (stopped)"; under a debugger it is t, which TracerPid tells, too.
    state.stopped |= line.starts_with("State:\tT");
    state.traced |= line.starts_with("TracerPid:\t") && line != "TracerPid:\t0";
  }
  state.frozen = !runs && is_frozen(process, control_groups);
  return state;
}

}  // namespace strata::launcher
