#include "core/child_end.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "core/system_call.h"

namespace strata {

/// glibc 2.36 declares this call for C alone.
UniqueFd watch_child(pid_t child) {
  return UniqueFd(
      static_cast<int>(checked(::syscall(SYS_pidfd_open, child, 0), "watching a child process")));
}

std::optional<int> wait_for_child(pid_t child, std::chrono::steady_clock::time_point end) {
  using std::chrono::milliseconds;
  const UniqueFd process = watch_child(child);
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
    pollfd entry{process.get(), POLLIN, 0};
    const int ready = ::poll(&entry, 1,
                             static_cast<int>(std::clamp<milliseconds::rep>(
                                 left.count(), 0, std::numeric_limits<int>::max())));
    if (ready < 0 && errno != EINTR) throw_system_error("waiting for a child process");
    if (ready == 0 && left.count() <= 0) return {};
    if (ready <= 0) continue;
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended < 0 && errno != EINTR) throw_system_error("reaping a child process");
    if (ended == child) return status;
  }
}

}  // namespace strata
