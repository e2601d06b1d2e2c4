#include "launcher/group/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "core/system_call.h"

namespace strata::launcher {
namespace {

constexpr int kHandled[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGTSTP,
                            SIGCONT, SIGUSR1, SIGUSR2, SIGCHLD};

bool is_ignored(int number) {
  struct sigaction action {};
  checked(::sigaction(number, nullptr, &action), "reading a signal's handling");
  return action.sa_handler == SIG_IGN;
}

void set_handling(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  checked(::sigaction(number, &action, nullptr), "setting a signal's handling");
}

}  // namespace

SignalQueue::SignalQueue() {
  set_handling(SIGPIPE, SIG_IGN);  // write() reports EPIPE instead
  set_handling(SIGXFSZ, SIG_IGN);  // likewise EFBIG, at a limit of file sizes (ulimit -f)
  set_handling(SIGCHLD, SIG_DFL);  // if it were ignored, the ranks' exit codes would be lost
  sigset_t handled;
  ::sigemptyset(&handled);
  for (const int number : kHandled)
    if (!is_ignored(number)) ::sigaddset(&handled, number);
  checked(::sigprocmask(SIG_BLOCK, &handled, &mask_before_), "blocking signals");
  fd_ = UniqueFd(checked(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
}

SignalQueue::~SignalQueue() { (void)::sigprocmask(SIG_SETMASK, &mask_before_, nullptr); }

int SignalQueue::next() {
  signalfd_siginfo info{};
  const ssize_t count = ::read(fd_.get(), &info, sizeof(info));
  return count == static_cast<ssize_t>(sizeof(info)) ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace strata::launcher
