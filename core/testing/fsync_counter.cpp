#include "core/testing/fsync_counter.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <utility>

namespace {

using FileId = std::pair<dev_t, ino_t>;

std::mutex mutex;
std::map<FileId, int>& counts() {
  static std::map<FileId, int> all;
  return all;
}

FileId id_of(const struct stat& status) { return {status.st_dev, status.st_ino}; }

}  // namespace

extern "C" int fsync(int fd) {
  const auto result = static_cast<int>(::syscall(SYS_fsync, fd));
  struct stat status {};
  if (result == 0 && ::fstat(fd, &status) == 0) {
    const std::lock_guard lock(mutex);
    ++counts()[id_of(status)];
  }
  return result;
}

namespace strata::tests {

int fsyncs_of(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return 0;
  const std::lock_guard lock(mutex);
  const auto found = counts().find(id_of(status));
  return found == counts().end() ? 0 : found->second;
}

void forget_fsyncs() {
  const std::lock_guard lock(mutex);
  counts().clear();
}

}  // namespace strata::tests
