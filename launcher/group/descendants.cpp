#include "launcher/group/descendants.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <system_error>

#include "core/integer.h"
#include "core/system_call.h"

namespace strata::launcher {
namespace {

/// Returns the parent of a process from /proc/PID/stat, -1 when the process is gone. The name in
/// parentheses may contain spaces and parentheses itself, so fields are counted from the last one.
pid_t parent_of(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  // A process may end between opening and reading: then the text is empty, without an exception.
  std::getline(file, text, '\0');
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return -1;
  std::istringstream fields(text.substr(name_end + 1));
  char state = 0;
  pid_t parent = -1;
  fields >> state >> parent;
  return fields ? parent : -1;
}

}  // namespace

void become_subreaper() {
  checked(::prctl(PR_SET_CHILD_SUBREAPER, 1), "taking over the ranks' orphans (subreaper)");
}

std::set<pid_t> children(const std::filesystem::path& processes) {
  std::set<pid_t> found;
  const pid_t self = ::getpid();
  std::error_code error;
  std::filesystem::directory_iterator it(processes, error);
  for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
    const auto pid = parse_integer(it->path().filename().string());
    if (pid && parent_of(it->path()) == self) found.insert(static_cast<pid_t>(*pid));
  }
  return found;
}

std::int64_t out_of_memory_kills() {
  std::ifstream file("/proc/vmstat");
  std::string name;
  for (std::int64_t value = 0; file >> name >> value;)
    if (name == "oom_kill") return value;
  return 0;
}

}  // namespace strata::launcher
