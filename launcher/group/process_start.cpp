#include "launcher/group/process_start.h"

#include <string>

#include "core/process_stat.h"

namespace strata::launcher {

std::optional<std::int64_t> process_start(pid_t pid, const std::filesystem::path& processes) {
  const auto stat = read_process_stat(processes / std::to_string(pid));
  if (!stat || stat->state == 'Z' || stat->state == 'X') return {};
  return stat->start;
}

bool goes_on(pid_t pid, std::optional<std::int64_t> start, const std::filesystem::path& processes) {
  const auto found = process_start(pid, processes);
  return found && (!start || *start == *found);
}

}  // namespace strata::launcher
