#include "launcher/output/output_queue.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace strata::launcher {
namespace {

/// Bytes that a pipe takes without blocking if poll(2) says that it is writable. (O_NONBLOCK would
/// change the descriptor of the shell and of all others who have it open.)
constexpr std::size_t kSafeBytes = 4096;

bool is_regular_file(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

OutputQueue::OutputQueue(int fd)
    : fd_(fd), is_terminal_(::isatty(fd) == 1), is_file_(is_regular_file(fd)) {}

void OutputQueue::append(std::string_view bytes) {
  if (error_ == 0) bytes_ += bytes;
}

void OutputQueue::write_some() {
  while (pending() && write_once()) {
  }
  if (!pending() || error_ != 0) {
    bytes_.clear();
    written_ = 0;
  } else if (written_ > kFullBytes) {
    bytes_.erase(0, written_);
    written_ = 0;
  }
}

/// Returns false if there is no room now, or if the descriptor failed.
bool OutputQueue::write_once() {
  std::size_t count = bytes_.size() - written_;
  if (!is_file_) {
    pollfd entry{fd_, POLLOUT, 0};
    if (::poll(&entry, 1, 0) <= 0) return false;
    count = std::min(count, kSafeBytes);
  }
  const ssize_t result = ::write(fd_, bytes_.data() + written_, count);
  if (result >= 0) {
    written_ += static_cast<std::size_t>(result);
    return true;
  }
  if (errno != EAGAIN && errno != EINTR) error_ = errno;
  return false;
}

}  // namespace strata::launcher
