#include "core/new_folders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

/// Each time, another process has removed a folder in between.
constexpr int kTries = 100;

std::error_code system_error_of(int error) { return {error, std::generic_category()}; }

bool is_there(const fs::path& path) {
  struct stat there;
  return ::stat(path.c_str(), &there) == 0;
}

}  // namespace

NewFolders::~NewFolders() {
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder)
    (void)::rmdir(folder->c_str());  // fails where something is in it
}

std::error_code NewFolders::make(const fs::path& folder) {
  std::error_code error;
  for (int tries = 0; tries < kTries; ++tries) {
    if (is_there(folder)) return {};
    error = make_new(folder);
    if (error != std::errc::file_exists) return error;  // else another has just made it
  }
  return error;  // a link that leads nowhere
}

std::error_code NewFolders::make_new(const fs::path& folder) {
  std::error_code error;
  fs::path whole = fs::absolute(folder, error);
  if (!whole.has_filename()) whole = whole.parent_path();  // "folder/"
  for (int tries = 0; tries < kTries && !error; ++tries) {
    if (::mkdir(whole.c_str(), mode_) == 0) {
      made_.push_back(whole);
      return {};
    }
    if (errno != ENOENT || whole == whole.parent_path()) return system_error_of(errno);
    error = make(whole.parent_path());
  }
  return error ? error : system_error_of(ENOENT);
}

void NewFolders::make_writable(const std::string& folder, const std::string& name) {
  int reason = ENOENT;
  for (int tries = 0; tries < kTries && reason == ENOENT; ++tries) {
    if (const std::error_code error = make(folder))
      throw IoError(folder, 0, "cannot create " + name, error.value());
    reason = why_not_writable(folder);
  }
  if (reason != 0) throw IoError(folder, 0, "cannot write to " + name, reason);
}

int why_not_writable(const std::string& folder) {
  struct stat there;
  if (::stat(folder.c_str(), &there) != 0) return errno;
  if (!S_ISDIR(there.st_mode)) return ENOTDIR;
  return ::access(folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
}

}  // namespace strata
