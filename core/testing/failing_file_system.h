// A file system in which an operation that the test chooses fails, or ends the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/file_system.h"

namespace strata {

enum class FileOperation : std::uint8_t {
  create,
  open,
  reserve,
  write,
  read,
  sync,
  make_directory,
  make_link,
  sync_directory,
  rename,
  remove,
  list,
};

/// The fault strikes the `nth` operation (from 1) of a kind; with `lasting`, every later one too.
struct FileFault {
  FileOperation operation = FileOperation::write;
  int nth = 1;
  int error_number = 0;
  bool lasting = false;
  bool partial = false;  ///< the first half of a write reaches the file before it fails
  bool kills = false;    ///< ends the process with SIGKILL instead of failing
};

/// Forwards to `inner`, which must outlive this object; it must outlive its open files.
class FailingFileSystem final : public FileSystem {
 public:
  FailingFileSystem(FileSystem& inner, const FileFault& fault) : inner_(inner), fault_(fault) {}

  /// Number of times that the fault struck, so that a test can check that it caused a failure.
  [[nodiscard]] int fired() const { return fired_; }
  /// Number of operations of the fault's kind so far.
  [[nodiscard]] int count() const { return count_; }
  /// Makes free_bytes() return this number from now on.
  void say_free(std::int64_t bytes) { free_bytes_ = bytes; }

  std::unique_ptr<StorageFile> create(const std::string& path, Caching caching) override;
  std::unique_ptr<StorageFile> open_for_writing(const std::string& path, Caching caching) override;
  std::unique_ptr<StorageFile> open_for_reading(const std::string& path, Caching caching) override;
  void make_directory(const std::string& path) override;
  void make_link(const std::string& target, const std::string& path) override;
  void sync_directory(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void remove_file(const std::string& path) override;
  void remove_directory(const std::string& path) override;
  std::vector<DirectoryEntry> list(const std::string& path) override;
  std::optional<std::int64_t> free_bytes(const std::string& path) override;

 private:
  friend class FailingFile;
  /// Counts one operation; returns true if it is to fail.
  bool strikes(FileOperation operation);
  /// Ends the process if the fault says so.
  void kill_if_meant() const;
  void strike_or_pass(FileOperation operation, const std::string& path, const char* what);

  FileSystem& inner_;
  FileFault fault_;
  std::optional<std::int64_t> free_bytes_;
  std::atomic<int> count_ = 0;
  std::atomic<int> fired_ = 0;
};

}  // namespace strata
