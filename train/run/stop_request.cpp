#include "train/run/stop_request.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/error.h"

namespace strata::train {
namespace {

[[noreturn]] void fail(const char* what, int error) {
  throw HostError(std::string(what) + " failed: " + std::strerror(error));
}

}  // namespace

StopRequest::StopRequest() {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGTERM);
  sigaddset(&wanted, SIGUSR1);
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &wanted, &before_); error != 0)
    fail("blocking signals", error);
  fd_ = UniqueFd(::signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC));
  if (fd_.get() < 0) {
    const int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    fail("signalfd", error);
  }
}

StopRequest::~StopRequest() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool StopRequest::requested() {
  if (requested_) return true;
  signalfd_siginfo info{};
  const ssize_t n = ::read(fd_.get(), &info, sizeof info);
  if (n < 0 && errno != EAGAIN && errno != EINTR) fail("reading a signalfd", errno);
  if (n <= 0) return false;
  requested_ = true;
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  return true;
}

}  // namespace strata::train
