#include "launcher/group/process_state.h"

#include <fstream>
#include <string>
#include <string_view>

#include "core/control_groups.h"
#include "core/integer.h"

namespace strata::launcher {
namespace {

/// Returns the command that thaws the outermost group that is frozen; "": none is. What the kernel
/// waits in tells nothing: a frozen thread stays where it was. A group freezes those below it, too,
/// which in version 1 then call themselves frozen.
std::string thaw_command(const std::filesystem::path& process,
                         const std::filesystem::path& hierarchies) {
  std::string command;
  for (const ControlGroup& group : control_groups(process / "cgroup", "freezer", hierarchies)) {
    const bool second = group.version == 2;
    const std::string file = group.folder / (second ? "cgroup.freeze" : "freezer.state");
    std::string state;
    std::ifstream(file) >> state;
    if (second ? state == "1" : state == "FROZEN" || state == "FREEZING")
      command = (second ? "echo 0 > " : "echo THAWED > ") + file;
  }
  return command;
}

/// Returns the number after `name` at the beginning of a line; 0: the line is another one.
std::uint64_t number_after(const std::string& line, std::string_view name) {
  if (!line.starts_with(name)) return 0;
  return static_cast<std::uint64_t>(parse_integer(line.substr(name.size())).value_or(0));
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
    state.switches += number_after(line, "voluntary_ctxt_switches:\t") +
                      number_after(line, "nonvoluntary_ctxt_switches:\t");
  }
  if (!runs) state.thaw = thaw_command(process, control_groups);
  state.frozen = !state.thaw.empty();
  return state;
}

}  // namespace strata::launcher
