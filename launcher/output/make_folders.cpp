#include "launcher/output/make_folders.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

namespace strata::launcher {

bool make_folders(const std::string& path, std::vector<std::string>& made) {
  constexpr mode_t kMode = 0700;
  if (::mkdir(path.c_str(), kMode) != 0) {
    if (errno == EEXIST) return true;
    const std::string parent = std::filesystem::path(path).parent_path().string();
    if (errno != ENOENT || parent.empty() || parent == path) return false;
    if (!make_folders(parent, made)) return false;
    if (::mkdir(path.c_str(), kMode) != 0) return errno == EEXIST;
  }
  made.push_back(path);
  return true;
}

}  // namespace strata::launcher
