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

/// Whether there is anything of this name, even a link that leads nowhere. What cannot be looked at
/// is not there: opening it says why.
bool is_name_taken(const std::string& path);

/// Identifies what a path leads to: two paths with equal device and number lead to the same.
struct PathStatus {
  std::uint64_t device = 0;  ///< the file system
  std::uint64_t number = 0;  ///< there
  bool is_directory = false;
};

/// Links are followed; nullopt: nothing is there. Throws IoError where that cannot be known, as
/// when a server does not answer: it may be there.
std::optional<PathStatus> find_status(const std::string& path);

/// An open file. Reads and writes are positional and may come from several threads.
class File {
 public:
  /// Throws IoError ("... cannot open ...") when the file is missing or is not a regular file.
  static File open_for_reading(const std::string& path);
  /// An existing file, for reading and writing.
  static File open_for_writing(const std::string& path);
  /// A new empty file; one that exists is truncated.
  static File create(const std::string& path);

  /// Fills `out` from `offset_bytes`. A file that ends earlier is an IoError. `what` is what is
  /// being transferred, for its message ("tensor 'x'").
  void read(std::int64_t offset_bytes, std::span<std::byte> out, std::string_view what = {}) const;
  void write(std::int64_t offset_bytes, std::span<const std::byte> data,
             std::string_view what = {});
  /// Data and metadata reach the disk.
  void sync();
  [[nodiscard]] std::int64_t size_bytes() const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  File(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  UniqueFd fd_;
  std::string path_;
};

/// The file's content; IoError when it has more than `limit_bytes`.
std::string read_whole_file(const std::string& path, std::int64_t limit_bytes);

/// Creates or replaces a file: written aside, synced, renamed; readers see the old or the new
/// content. Links are followed. What is there and is no file (/dev/stdout, a pipe) is written to.
void write_file_atomically(const std::string& path, const std::string& content);

/// fsync of a directory: names that were created or renamed in it last.
void sync_directory(const std::string& path);

}  // namespace strata
