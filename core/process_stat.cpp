#include "core/process_stat.h"

#include <fstream>
#include <sstream>
#include <string>

#include "core/integer.h"

namespace strata {
namespace {

constexpr int kStateField = 3, kParentField = 4, kStartField = 22;  // counted from 1

}  // namespace

std::optional<ProcessStat> read_process_stat(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat");
  std::string text;
  // A process may end between opening and reading: then the text is empty, without an exception.
  std::getline(file, text, '\0');
  // The name in parentheses may contain spaces and parentheses itself; no field after it does.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  ProcessStat stat;
  std::string field;
  for (int i = kStateField; i <= kStartField && fields >> field; ++i) {
    if (i == kStateField) stat.state = field[0];
    if (i == kParentField) stat.parent = static_cast<pid_t>(parse_integer(field).value_or(-1));
    if (i == kStartField) stat.start = parse_integer(field);
  }
  return stat;
}

}  // namespace strata
