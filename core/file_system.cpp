#include "core/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/error.h"
#include "core/system_call.h"
#include "core/unique_fd.h"

namespace strata {
namespace {

// The umask removes the permissions that the owner does not want to give.
constexpr mode_t kFileMode = 0666;
constexpr mode_t kDirectoryMode = 0777;
/// Follows no link to a file: folders may be links that somebody has chosen, files of a checkpoint
/// are none.
int open_uninterrupted(const std::string& path, int flags) {
  const int links = (flags & O_DIRECTORY) != 0 ? 0 : O_NOFOLLOW;
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | links | O_CLOEXEC, kFileMode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

std::string bytes_text(std::size_t bytes) { return fmt::format("{} bytes", bytes); }

/// Number of leading bytes of a transfer that can bypass the page cache.
std::size_t direct_part(std::int64_t offset, const std::byte* memory, std::size_t bytes) {
  const auto aligned = [](std::uint64_t value) { return value % kDirectAlignmentBytes == 0; };
  if (!aligned(static_cast<std::uint64_t>(offset)) ||
      !aligned(reinterpret_cast<std::uintptr_t>(memory)))
    return 0;
  return bytes - bytes % static_cast<std::size_t>(kDirectAlignmentBytes);
}

class PosixFile final : public StorageFile {
 public:
  PosixFile(std::string path, UniqueFd cached, UniqueFd direct)
      : path_(std::move(path)), cached_(std::move(cached)), direct_(std::move(direct)) {}

  [[nodiscard]] const std::string& path() const override { return path_; }

  [[nodiscard]] std::int64_t size_bytes() const override {
    struct stat status {};
    if (::fstat(cached_.get(), &status) != 0) throw IoError(path_, 0, "cannot stat", errno);
    return status.st_size;
  }

  void reserve(std::int64_t size_bytes) override {
    const std::string what = " of " + bytes_text(static_cast<std::size_t>(size_bytes));
    if (::ftruncate(cached_.get(), size_bytes) != 0)
      throw IoError(path_, 0, "cannot set the size" + what, errno);
    if (size_bytes == 0) return;
    int result = 0;
    do {
      result = ::fallocate(cached_.get(), 0, 0, size_bytes);
    } while (result != 0 && errno == EINTR);
    if (result != 0 && errno != EOPNOTSUPP && errno != ENOSYS)
      throw IoError(path_, 0, "cannot reserve the space" + what, errno);
  }

  void write(std::int64_t offset_bytes, std::span<const std::byte> data) override {
    transfer(offset_bytes, data.data(), data.size(), "write",
             [](int fd, const std::byte* memory, std::size_t bytes, std::int64_t at) {
               return ::pwrite(fd, memory, bytes, at);
             });
  }

  void read(std::int64_t offset_bytes, std::span<std::byte> out) const override {
    transfer(offset_bytes, out.data(), out.size(), "read",
             [](int fd, std::byte* memory, std::size_t bytes, std::int64_t at) {
               return ::pread(fd, memory, bytes, at);
             });
  }

  void sync() override {
    if (::fsync(cached_.get()) != 0) throw IoError(path_, 0, "fsync failed", errno);
  }

 private:
  template <typename Byte, typename Call>
  void transfer(std::int64_t offset_bytes, Byte* memory, std::size_t bytes, const char* verb,
                const Call& call) const {
    bool try_direct = direct_.valid();
    std::size_t done = 0;
    while (done < bytes) {
      const std::int64_t at = offset_bytes + static_cast<std::int64_t>(done);
      const std::size_t left = std::min(bytes - done, kMaxTransferBytes);
      const std::size_t direct = try_direct ? direct_part(at, memory + done, left) : 0;
      const ssize_t n = call(direct > 0 ? direct_.get() : cached_.get(), memory + done,
                             direct > 0 ? direct : left, at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EINVAL && direct > 0) {  // O_DIRECT is refused here only
        try_direct = false;
        continue;
      }
      if (n <= 0) {
        std::string what = std::string(verb) + " of " + bytes_text(bytes) + " failed";
        if (n == 0) what += ": the file ends after " + bytes_text(done) + " of them";
        throw IoError(path_, static_cast<std::uint64_t>(at), what, n < 0 ? errno : 0);
      }
      done += static_cast<std::size_t>(n);
    }
  }

  std::string path_;
  UniqueFd cached_;
  UniqueFd direct_;  ///< not valid: everything goes through the cache
};

std::unique_ptr<StorageFile> open_file(const std::string& path, int flags, Caching caching,
                                       const char* what) {
  // O_NONBLOCK: opening a FIFO without a writer must not hang; it has no effect on regular files.
  UniqueFd cached(open_uninterrupted(path, flags | O_NONBLOCK));
  if (!cached.valid()) throw IoError(path, 0, what, errno);
  struct stat status {};
  if (::fstat(cached.get(), &status) != 0) throw IoError(path, 0, "cannot stat", errno);
  if (!S_ISREG(status.st_mode)) throw IoError(path, 0, "is not a regular file", 0);
  UniqueFd direct;
  // A file system that refuses O_DIRECT says so here; then everything goes through the cache.
  if (caching == Caching::direct)
    direct = UniqueFd(open_uninterrupted(path, (flags & ~(O_CREAT | O_EXCL)) | O_DIRECT));
  return std::make_unique<PosixFile>(path, std::move(cached), std::move(direct));
}

DirectoryEntry::Kind kind_of(int directory, const dirent& entry) {
  mode_t mode = DTTOIF(entry.d_type);
  if (entry.d_type == DT_UNKNOWN) {
    struct stat status {};
    if (::fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
      mode = status.st_mode;
  }
  if (S_ISREG(mode)) return DirectoryEntry::Kind::file;
  return S_ISDIR(mode) ? DirectoryEntry::Kind::directory : DirectoryEntry::Kind::other;
}

}  // namespace

std::unique_ptr<StorageFile> PosixFileSystem::create(const std::string& path, Caching caching) {
  return open_file(path, O_RDWR | O_CREAT | O_EXCL, caching, "cannot create");
}

std::unique_ptr<StorageFile> PosixFileSystem::open_for_writing(const std::string& path,
                                                               Caching caching) {
  return open_file(path, O_RDWR, caching, "cannot open for writing");
}

std::unique_ptr<StorageFile> PosixFileSystem::open_for_reading(const std::string& path,
                                                               Caching caching) {
  return open_file(path, O_RDONLY, caching, "cannot open");
}

void PosixFileSystem::make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), kDirectoryMode) != 0)
    throw IoError(path, 0, "cannot create the directory", errno);
}

void PosixFileSystem::make_link(const std::string& target, const std::string& path) {
  if (::symlink(target.c_str(), path.c_str()) != 0)
    throw IoError(path, 0, "cannot create the link to " + target, errno);
}

void PosixFileSystem::sync_directory(const std::string& path) {
  const UniqueFd fd(open_uninterrupted(path, O_RDONLY | O_DIRECTORY));
  if (!fd.valid()) throw IoError(path, 0, "cannot open the directory", errno);
  if (::fsync(fd.get()) != 0) throw IoError(path, 0, "fsync of the directory failed", errno);
}

void PosixFileSystem::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    throw IoError(from, 0, "cannot rename to " + to, errno);
}

void PosixFileSystem::remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0) throw IoError(path, 0, "cannot remove", errno);
}

void PosixFileSystem::remove_directory(const std::string& path) {
  if (::rmdir(path.c_str()) != 0) throw IoError(path, 0, "cannot remove the directory", errno);
}

std::vector<DirectoryEntry> PosixFileSystem::list(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (directory == nullptr) throw IoError(path, 0, "cannot list", errno);
  std::vector<DirectoryEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    std::string name = entry->d_name;
    if (name != "." && name != "..")
      entries.push_back({std::move(name), kind_of(::dirfd(directory.get()), *entry)});
  }
  if (errno != 0) throw IoError(path, 0, "cannot list", errno);
  std::sort(entries.begin(), entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
  return entries;
}

std::optional<std::int64_t> PosixFileSystem::free_bytes(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0)
    throw IoError(path, 0, "cannot ask for free space", errno);
  if (status.f_blocks == 0) return {};  // some network file systems do not count
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(status.f_bavail, status.f_frsize, &bytes)) return {};
  return bytes;
}

void write_new_file(FileSystem& files, const std::string& path, const std::string& content) {
  const std::unique_ptr<StorageFile> file = files.create(path, Caching::cached);
  file->write(0, std::as_bytes(std::span(content)));
  file->sync();
}

void remove_tree(FileSystem& files, const std::string& path) {
  for (const DirectoryEntry& entry : files.list(path)) {
    const std::string inside = path + "/" + entry.name;
    if (entry.kind == DirectoryEntry::Kind::directory)
      remove_tree(files, inside);
    else
      files.remove_file(inside);
  }
  files.remove_directory(path);
}

std::string parent_directory(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path.empty() ? "." : "/";
  const std::size_t slash = path.rfind('/', end);
  if (slash == std::string::npos) return ".";
  const std::size_t parent_end = path.find_last_not_of('/', slash);
  return parent_end == std::string::npos ? "/" : path.substr(0, parent_end + 1);
}

}  // namespace strata
