#include "train/files/commit.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/file.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

std::string staging_directory(const std::string& directory, const std::string& tag) {
  return without_trailing_slash(directory) + ".tmp-" + tag;
}

void require_new_directory(const std::string& directory) {
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (status.type() == fs::file_type::not_found) return;
  if (status.type() != fs::file_type::directory)
    throw DataError(directory + ": exists and is not a directory; name another output directory");
  const bool empty = fs::is_empty(directory, error);
  if (error) throw IoError(directory, 0, "cannot list", error.value());
  if (!empty)
    throw DataError(directory +
                    ": exists and is not empty; name another output directory, or move it away");
}

void create_staging(const std::string& staging) {
  std::error_code error;
  fs::remove_all(staging, error);
  if (error) throw IoError(staging, 0, "cannot remove what an earlier attempt left", error.value());
  fs::create_directories(staging, error);
  if (error) throw IoError(staging, 0, "cannot create the directory", error.value());
}

void commit_directory(const std::string& staging, const std::string& directory) {
  require_new_directory(directory);
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(staging, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it->is_directory()) {
      sync_directory(it->path().string());
    } else if (it->is_regular_file()) {
      File::open_for_writing(it->path().string()).sync();
    }
  }
  if (error) throw IoError(staging, 0, "cannot list", error.value());
  sync_directory(staging);
  const std::string target = without_trailing_slash(directory);
  // Replaces an empty directory, fails on any other: nothing that appeared meanwhile is lost.
  if (std::rename(staging.c_str(), target.c_str()) != 0)
    throw IoError(target, 0, "cannot rename " + staging, errno);
  sync_directory(parent_of(target));
}

}  // namespace strata::train
