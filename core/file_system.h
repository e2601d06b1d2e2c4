// Files that must survive a crash: the only door through which checkpoints reach a disk, so that
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

/// `direct` passes the page cache by (O_DIRECT) where file system, offset, size and memory allow
/// it: whole multiples of kDirectAlignmentBytes; whatever else goes through the cache.
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
  /// Sets the size and reserves the space where the file system can: a full disk shows here.
  virtual void reserve(std::int64_t size_bytes) = 0;
  virtual void write(std::int64_t offset_bytes, std::span<const std::byte> data) = 0;
  /// Fills `out`; a file that ends earlier is an IoError.
  virtual void read(std::int64_t offset_bytes, std::span<std::byte> out) const = 0;
  /// What was written through this object reaches the disk. After a failure the system may have
  /// forgotten the data while a second call succeeds: the file is lost, do not call again.
  virtual void sync() = 0;
};

struct DirectoryEntry {
  enum class Kind : std::uint8_t { file, directory, other };  ///< a link is `other`
  std::string name;
  Kind kind = Kind::other;
};

/// Thread-safe. Everything that fails throws IoError. Nothing here follows a link in the last part
/// of a path.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  FileSystem() = default;
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;

  /// A new file, shared as the umask says; one that exists is an error.
  virtual std::unique_ptr<StorageFile> create(const std::string& path, Caching caching) = 0;
  /// A file that exists, for reading and writing.
  virtual std::unique_ptr<StorageFile> open_for_writing(const std::string& path,
                                                        Caching caching) = 0;
  virtual std::unique_ptr<StorageFile> open_for_reading(const std::string& path,
                                                        Caching caching) = 0;
  /// A new directory, shared as the umask says, in one that exists.
  virtual void make_directory(const std::string& path) = 0;
  /// A new symbolic link that says `target`, as it is. Syncing its directory makes it last.
  virtual void make_link(const std::string& target, const std::string& path) = 0;
  /// The names in the directory reach the disk: what was created, renamed and removed in it.
  virtual void sync_directory(const std::string& path) = 0;
  /// Within one file system. Replaces a file or an empty directory, nothing else.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void remove_file(const std::string& path) = 0;
  /// An empty one.
  virtual void remove_directory(const std::string& path) = 0;
  /// In order of names, without "." and "..".
  virtual std::vector<DirectoryEntry> list(const std::string& path) = 0;
  /// What may still be written where the directory lies, as far as the system tells (quotas may be
  /// tighter); nullopt: it does not.
  virtual std::optional<std::int64_t> free_bytes(const std::string& path) = 0;
};

/// The machine's.
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

/// A new file with this content, synced.
void write_new_file(FileSystem& files, const std::string& path, const std::string& content);

/// The directory with all that is in it. Links are removed, not followed.
void remove_tree(FileSystem& files, const std::string& path);

/// The directory in which `path` lies: "." when it is a plain name.
std::string parent_directory(const std::string& path);

}  // namespace strata
