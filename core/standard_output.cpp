#include "core/standard_output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/error.h"
#include "core/system_call.h"
#include "core/unique_fd.h"

namespace strata {

bool reader_has_gone(int fd, int error_number) {
  if (error_number == EPIPE || error_number == EBADF) return true;
  pollfd entry{fd, POLLOUT, 0};  // a terminal that has gone fails with EIO, as a broken disk does
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLERR | POLLHUP)) != 0;
}

void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    // open(2) takes the lowest number that is free.
    if (::open("/dev/null", O_RDWR) != stream)
      throw_system_error("opening /dev/null in place of a closed standard stream");
  }
}

void StandardOutput::note_failure(int error_number) {
  std::clearerr(stream_);  // so that finish() finds there what others did
  takes_text_ = false;
  if (!lost_ && !reader_has_gone(::fileno(stream_), error_number)) lost_ = error_number;
}

void StandardOutput::print(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stream_) != text.size() || std::fflush(stream_) != 0)
    note_failure(errno);
}

void StandardOutput::throw_if_lost() {
  if (lost_ && !std::exchange(thrown_, true))
    throw IoError("standard output", 0, "text is lost", *lost_);
}

void StandardOutput::finish() {
  errno = 0;
  if (std::fflush(stream_) != 0)
    note_failure(errno);
  else if (std::ferror(stream_) != 0)
    note_failure(0);
  // Network file systems may say only now that a disk is full: each close(2) of the file waits for
  // it, and the stream itself stays usable.
  UniqueFd copy(::dup(::fileno(stream_)));
  if (copy.valid() && ::close(copy.release()) != 0 && errno != EINTR) note_failure(errno);
  throw_if_lost();
}

}  // namespace strata
