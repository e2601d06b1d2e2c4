#include "core/control_groups.h"

#include <fstream>
#include <string>

namespace strata {
namespace {

namespace fs = std::filesystem;

/// True if a list "cpu,memory" names the controller.
bool names(std::string_view controllers, std::string_view controller) {
  for (std::size_t begin = 0; begin <= controllers.size();) {
    const std::size_t end = std::min(controllers.find(',', begin), controllers.size());
    if (controllers.substr(begin, end - begin) == controller) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

std::vector<ControlGroup> control_groups(const fs::path& process_groups,
                                         std::string_view controller, const fs::path& hierarchies) {
  std::vector<ControlGroup> groups;
  std::error_code error;
  // Beside version 1, version 2 has a folder of its own.
  const bool both = fs::exists(hierarchies / "unified", error);
  std::ifstream file(process_groups);
  for (std::string line; std::getline(file, line);) {  // "N:controllers:/path"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_second = controllers.empty();
    if (!is_second && !names(controllers, controller)) continue;
    const fs::path root = is_second ? (both ? hierarchies / "unified" : hierarchies)
                                    : hierarchies / std::string(controller);
    fs::path below = fs::path(line.substr(second + 1)).relative_path();
    for (;; below = below.parent_path()) {
      groups.push_back({below.empty() ? root : root / below, is_second ? 2 : 1});
      if (below.empty()) break;
    }
  }
  return groups;
}

}  // namespace strata
