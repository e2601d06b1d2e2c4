// Makes folders for what will be written, and leaves none of them behind that was not needed.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace strata {

/// Several processes may make and remove the same folders at once. An empty folder may go when the
/// process that made it ends: whoever puts something there later makes it again first.
class NewFolders {
 public:
  /// `mode`: of the folders, less what the umask takes away.
  explicit NewFolders(mode_t mode = 0777) : mode_(mode) {}
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;
  /// Removes the folders that it has made and that are still empty.
  ~NewFolders();

  /// Makes a folder, and those that lead to it, where they are missing. What is there stays as it
  /// is, also a file. Returns what went wrong, if anything.
  std::error_code make(const std::filesystem::path& folder);

  /// Does the same for a folder that must be new: file_exists if it is there.
  std::error_code make_new(const std::filesystem::path& folder);

  /// Makes a folder likewise that this process can write to. Throws IoError that says "cannot
  /// create" or "cannot write to", and `name`.
  void make_writable(const std::string& folder, const std::string& name);

  /// Lets the folders stay that it has made so far.
  void keep() { made_.clear(); }

 private:
  mode_t mode_;
  std::vector<std::filesystem::path> made_;  ///< absolute; outer ones first
};

/// Returns 0 for a folder that this process can write to, or the errno that says why it cannot.
int why_not_writable(const std::string& folder);

}  // namespace strata
