#include "offload/nvme/space_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>

#include "core/error.h"
#include "core/system_call.h"
#include "offload/nvme/disk_alignment.h"

namespace strata::offload {
namespace {

constexpr mode_t kOwnerOnly = 0600;

/// Calls open(2) with O_DIRECT, or without it if the file system refuses. -1: failed, see errno.
int open_direct(const std::string& path, int flags, const std::string& directory,
                std::vector<std::string>& notes) {
  int fd = ::open(path.c_str(), flags | O_DIRECT | O_RDWR | O_CLOEXEC, kOwnerOnly);
  if (fd >= 0 || errno != EINVAL) return fd;
  if ((flags & O_CREAT) != 0) ::unlink(path.c_str());  // made, though the open failed
  fd = ::open(path.c_str(), flags | O_RDWR | O_CLOEXEC, kOwnerOnly);
  if (fd >= 0)
    notes.push_back(directory +
                    ": this file system refuses O_DIRECT, so transfers go through the page cache, "
                    "which takes memory of its own");
  return fd;
}

[[noreturn]] void throw_cannot_open(const std::string& directory) {
  const int number = errno;
  throw IoError(
      directory, 0,
      std::string("cannot make a file for offloaded tensors in this directory") +
          (::access(directory.c_str(), F_OK) != 0 ? ", which has to exist (mkdir -p)" : ""),
      number);
}

/// Returns the bytes that this user may still take; nothing if the file system does not tell.
std::optional<std::int64_t> available_bytes(const struct statvfs& found) {
  if (found.f_blocks == 0) return std::nullopt;
  const auto blocks = ::geteuid() == 0 ? found.f_bfree : found.f_bavail;
  return static_cast<std::int64_t>(blocks) * static_cast<std::int64_t>(found.f_frsize);
}
std::optional<std::int64_t> available_bytes(int file) {
  struct statvfs found {};
  if (::fstatvfs(file, &found) != 0) return std::nullopt;
  return available_bytes(found);
}

[[noreturn]] void throw_no_space(const std::string& directory, std::int64_t bytes,
                                 std::optional<std::int64_t> available, int number) {
  throw IoError(
      directory, 0,
      fmt::format("cannot reserve {} bytes for offloaded tensors{}; free space there or choose "
                  "another directory",
                  bytes, available ? fmt::format(", {} bytes are available", *available) : ""),
      number);
}

/// Reserves blocks by writing zeros, for file systems without fallocate. Returns 0 or errno.
int write_zeros(int file, std::int64_t bytes) {
  constexpr std::int64_t kAtOnce = std::int64_t{1} << 20;
  const AlignedMemory zeros(kAtOnce);
  for (std::int64_t offset = 0; offset < bytes;) {
    const ssize_t written =
        ::pwrite(file, zeros.bytes().data(),
                 static_cast<std::size_t>(std::min(kAtOnce, bytes - offset)), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    offset += written;
  }
  return 0;
}

}  // namespace

UniqueFd open_and_unlink(const std::string& directory, std::vector<std::string>& notes) {
  for (;;) {
    std::uint64_t unique = 0;
    checked(::getrandom(&unique, sizeof(unique), 0), "getrandom");
    const std::string path = fmt::format("{}/.strata-{}", directory, unique);
    UniqueFd file(open_direct(path, O_CREAT | O_EXCL, directory, notes));
    if (file.valid()) {
      ::unlink(path.c_str());
      return file;
    }
    if (errno != EEXIST) throw_cannot_open(directory);
  }
}

UniqueFd open_space_file(const std::string& directory, std::vector<std::string>& notes) {
  UniqueFd file(open_direct(directory, O_TMPFILE | O_EXCL, directory, notes));
  if (file.valid()) return file;
  if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)
    return open_and_unlink(directory, notes);
  throw_cannot_open(directory);
}

bool lies_in_memory(int file) {
  struct statfs found {};
  return ::fstatfs(file, &found) == 0 &&
         (found.f_type == TMPFS_MAGIC || found.f_type == RAMFS_MAGIC);
}

std::int64_t free_bytes(const std::string& directory) {
  struct statvfs found {};
  if (::statvfs(directory.c_str(), &found) != 0) return 0;
  return available_bytes(found).value_or(std::numeric_limits<std::int64_t>::max());
}

void reserve_space(int file, const std::string& directory, std::int64_t bytes) {
  if (bytes == 0) return;
  const auto available = available_bytes(file);
  if (available && *available < bytes) throw_no_space(directory, bytes, available, ENOSPC);
  int result = 0;
  do {
    result = ::fallocate(file, 0, 0, bytes) == 0 ? 0 : errno;
  } while (result == EINTR);
  if (result == EOPNOTSUPP) result = write_zeros(file, bytes);
  if (result != 0) throw_no_space(directory, bytes, available_bytes(file), result);
}

}  // namespace strata::offload
