#include "launcher/group/descendants.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <fstream>
#include <system_error>

#include "core/integer.h"
#include "core/process_stat.h"
#include "core/system_call.h"

namespace strata::launcher {

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
    if (!pid) continue;
    const auto stat = read_process_stat(it->path());
    if (stat && stat->parent == self) found.insert(static_cast<pid_t>(*pid));
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
