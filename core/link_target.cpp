#include "core/link_target.h"

#include <filesystem>
#include <system_error>

namespace strata {

namespace fs = std::filesystem;

std::string link_target(const std::string& path) {
  std::error_code unknown;
  if (!fs::is_symlink(fs::symlink_status(path, unknown))) return path;
  const fs::path target = fs::weakly_canonical(path, unknown);
  return unknown ? path : target.string();
}

}  // namespace strata
