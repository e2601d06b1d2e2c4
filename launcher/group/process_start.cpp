#include "launcher/group/process_start.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "core/integer.h"

namespace strata::launcher {
namespace {

constexpr int kStartField = 22;  // of /proc/PID/stat (proc(5)), counted from 1; the state is 3

}  // namespace

std::optional<std::int64_t> process_start(pid_t pid, const std::filesystem::path& processes) {
  std::ifstream file(processes / std::to_string(pid) / "stat");
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = stat.rfind(')');  // the name may have blanks and parentheses
  if (name_end == std::string::npos) return {};
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= kStartField; ++i) {
    if (!(fields >> field)) return {};
    if (i == 3 && (field == "Z" || field == "X")) return {};
  }
  return parse_integer(field);
}

bool goes_on(pid_t pid, std::optional<std::int64_t> start, const std::filesystem::path& processes) {
  const auto found = process_start(pid, processes);
  return found && (!start || *start == *found);
}

}  // namespace strata::launcher
