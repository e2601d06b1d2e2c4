// Checked file access: every call transfers everything or throws IoError naming file and offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/unique_fd.h"

namespace strata {

/// True if anything has this name, even a link that leads nowhere. A path that cannot be examined
/// counts as free: opening it will report the reason.
bool is_name_taken(const std::string& path);

/// Identity of what a path leads to: two paths with equal device and number lead to the same thing.
struct PathStatus {
  std::uint64_t device = 0;  ///< the file system
  std::uint64_t number = 0;  ///< inode on that device
  bool is_directory = false;
};

/// Follows links; nullopt means that nothing is there. Throws IoError if that cannot be known, as
/// when a server does not answer: the file may exist.
std::optional<PathStatus> find_status(const std::string& path);

/// An open file. Reads and writes are positional and may come from several threads.
class File {
 public:
  /// Throws IoError ("... cannot open ...") when the file is missing or is not a regular file.
  static File open_for_reading(const std::string& path);
  /// Opens an existing file for reading and writing.
  static File open_for_writing(const std::string& path);
  /// Creates an empty file; truncates an existing one.
  static File create(const std::string& path);

  /// Fills `out` from `offset_bytes` on. Throws IoError when the file ends earlier. `what` names
  /// the data in the message ("tensor 'x'").
  void read(std::int64_t offset_bytes, std::span<std::byte> out, std::string_view what = {}) const;
  void write(std::int64_t offset_bytes, std::span<const std::byte> data,
             std::string_view what = {});
  /// Returns once data and metadata have reached the disk.
  void sync();
  [[nodiscard]] std::int64_t size_bytes() const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  File(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  UniqueFd fd_;
  std::string path_;
};

/// Returns the file's content; throws IoError when it has more than `limit_bytes`.
std::string read_whole_file(const std::string& path, std::int64_t limit_bytes);

/// Creates or replaces a file: writes under another name, syncs, renames, so that readers see the
/// old or the new content. Follows links. Writes to devices and pipes directly.
void write_file_atomically(const std::string& path, const std::string& content);

/// Syncs a directory, so that names created or renamed in it survive a crash.
void sync_directory(const std::string& path);

}  // namespace strata
