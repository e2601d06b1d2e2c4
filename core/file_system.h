// Files that must survive a crash. Checkpoints reach a disk through this interface alone, so that
// tests can make any operation fail and replay what a power loss may leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace strata {

/// `direct` bypasses the page cache (O_DIRECT) where the file system allows it and offset, size and
/// memory are multiples of kDirectAlignmentBytes; other transfers go through the cache.
enum class Caching : std::uint8_t { cached, direct };
inline constexpr std::int64_t kDirectAlignmentBytes = 4096;

/// An open regular file. All methods transfer everything or throw IoError (path, offset, bytes,
/// errno). Reads and writes may come from several threads.
class StorageFile {
 public:
  virtual ~StorageFile() = default;
  StorageFile() = default;
  StorageFile(const StorageFile&) = delete;
  StorageFile& operator=(const StorageFile&) = delete;

  [[nodiscard]] virtual const std::string& path() const = 0;
  [[nodiscard]] virtual std::int64_t size_bytes() const = 0;
  /// Sets the size and reserves the space where the file system can; fails if the disk is full.
  virtual void reserve(std::int64_t size_bytes) = 0;
  virtual void write(std::int64_t offset_bytes, std::span<const std::byte> data) = 0;
  /// Fills `out`; throws IoError when the file ends earlier.
  virtual void read(std::int64_t offset_bytes, std::span<std::byte> out) const = 0;
  /// Returns once everything written through this object has reached the disk. After a failure the
  /// data may be lost although a second call succeeds: do not retry.
  virtual void sync() = 0;
};

struct DirectoryEntry {
  enum class Kind : std::uint8_t { file, directory, other };  ///< a link is `other`
  std::string name;
  Kind kind = Kind::other;
};

/// Thread-safe. Every failure throws IoError. No method follows a link in the last component of a
/// path.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  FileSystem() = default;
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;

  /// Creates a file with permissions from the umask; an existing one is an error.
  virtual std::unique_ptr<StorageFile> create(const std::string& path, Caching caching) = 0;
  /// Opens an existing file for reading and writing.
  virtual std::unique_ptr<StorageFile> open_for_writing(const std::string& path,
                                                        Caching caching) = 0;
  virtual std::unique_ptr<StorageFile> open_for_reading(const std::string& path,
                                                        Caching caching) = 0;
  /// Creates a directory, with permissions from the umask, in an existing one.
  virtual void make_directory(const std::string& path) = 0;
  /// Creates a symbolic link with exactly the text `target`. Sync its directory to make it durable.
  virtual void make_link(const std::string& target, const std::string& path) = 0;
  /// Makes creations, renames and removals of names in this directory durable.
  virtual void sync_directory(const std::string& path) = 0;
  /// Renames within one file system. Replaces a file or an empty directory, nothing else.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void remove_file(const std::string& path) = 0;
  /// Removes an empty directory.
  virtual void remove_directory(const std::string& path) = 0;
  /// Lists the directory in order of names, without "." and "..".
  virtual std::vector<DirectoryEntry> list(const std::string& path) = 0;
  /// Free bytes of the file system that holds `path`, as far as it tells (quotas may be tighter);
  /// nullopt if it does not.
  virtual std::optional<std::int64_t> free_bytes(const std::string& path) = 0;
};

/// The file system of this machine.
class PosixFileSystem final : public FileSystem {
 public:
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
};

/// Creates a file with this content and syncs it.
void write_new_file(FileSystem& files, const std::string& path, const std::string& content);

/// Removes the directory and all that is in it. Links are removed, not followed.
void remove_tree(FileSystem& files, const std::string& path);

/// The directory that holds `path`: "." when `path` is a plain name.
std::string parent_directory(const std::string& path);

}  // namespace strata
