#include "core/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "core/replaced_file.h"
#include "core/system_call.h"

namespace strata {
namespace {

UniqueFd open_checked(const std::string& path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) throw IoError(path, 0, "cannot open", errno);
  return UniqueFd(fd);
}

void require_regular(const UniqueFd& fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw IoError(path, 0, "cannot stat", errno);
  if (S_ISDIR(status.st_mode)) throw IoError(path, 0, "cannot open", EISDIR);
  if (!S_ISREG(status.st_mode)) throw IoError(path, 0, "is not a regular file", 0);
}

/// Returns " of " and `what` ("tensor 'x'"), or nothing if `what` is empty.
std::string subject(std::string_view what) {
  return what.empty() ? std::string() : " of " + std::string(what);
}

}  // namespace

bool is_name_taken(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

std::optional<PathStatus> find_status(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    throw IoError(path, 0, "cannot look at it", errno);
  }
  return PathStatus{status.st_dev, status.st_ino, S_ISDIR(status.st_mode)};
}

File File::open_for_reading(const std::string& path) {
  // O_NONBLOCK: a FIFO without writer must not hang the open; it has no effect on regular files.
  UniqueFd fd = open_checked(path, O_RDONLY | O_NONBLOCK);
  require_regular(fd, path);
  return File(std::move(fd), path);
}

File File::open_for_writing(const std::string& path) {
  UniqueFd fd = open_checked(path, O_RDWR | O_NONBLOCK);
  require_regular(fd, path);
  return File(std::move(fd), path);
}

File File::create(const std::string& path) {
  return File(open_checked(path, O_RDWR | O_CREAT | O_TRUNC), path);
}

void File::read(std::int64_t offset_bytes, std::span<std::byte> out, std::string_view what) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::size_t part = std::min(out.size() - done, kMaxTransferBytes);
    const auto at = offset_bytes + static_cast<std::int64_t>(done);
    const ssize_t n = ::pread(fd_.get(), out.data() + done, part, at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw IoError(path_, static_cast<std::uint64_t>(at), "read" + subject(what) + " failed",
                    errno);
    if (n == 0)
      throw IoError(path_, static_cast<std::uint64_t>(at),
                    fmt::format("read{} failed: the file ends, {} more bytes expected",
                                subject(what), out.size() - done),
                    0);
    done += static_cast<std::size_t>(n);
  }
}

void File::write(std::int64_t offset_bytes, std::span<const std::byte> data,
                 std::string_view what) {
  std::size_t done = 0;
  while (done < data.size()) {
    const std::size_t part = std::min(data.size() - done, kMaxTransferBytes);
    const auto at = offset_bytes + static_cast<std::int64_t>(done);
    const ssize_t n = ::pwrite(fd_.get(), data.data() + done, part, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      throw IoError(path_, static_cast<std::uint64_t>(at), "write" + subject(what) + " failed",
                    n < 0 ? errno : 0);
    done += static_cast<std::size_t>(n);
  }
}

void File::sync() {
  if (::fsync(fd_.get()) != 0) throw IoError(path_, 0, "fsync failed", errno);
}

std::int64_t File::size_bytes() const {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) throw IoError(path_, 0, "cannot stat", errno);
  return status.st_size;
}

std::string read_whole_file(const std::string& path, std::int64_t limit_bytes) {
  const File file = File::open_for_reading(path);
  const std::int64_t size = file.size_bytes();
  if (size > limit_bytes)
    throw IoError(
        path, 0, fmt::format("the file has {} bytes, more than the limit of {}", size, limit_bytes),
        0);
  std::string content(static_cast<std::size_t>(size), '\0');
  file.read(0, std::as_writable_bytes(std::span(content)));
  return content;
}

void write_file_atomically(const std::string& path, const std::string& content) {
  ReplacedFile file(path);
  file.append(content);
  file.sync();
  file.commit();
}

void sync_directory(const std::string& path) {
  const UniqueFd fd = open_checked(path, O_RDONLY | O_DIRECTORY);
  if (::fsync(fd.get()) != 0) throw IoError(path, 0, "fsync failed", errno);
}

}  // namespace strata
