#include "train/run/stop_request.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <future>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace strata::train {
namespace {

using std::chrono::milliseconds;

/// Time to say what is lost before the launcher sends SIGKILL.
constexpr milliseconds kBeforeLauncher{1000};

[[noreturn]] void fail(const char* what, int error) {
  throw HostError(std::string(what) + " failed: " + std::strerror(error));
}

bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t heard_signals(bool with_sigint) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGUSR1, SIGHUP})
    if (!is_ignored(number)) sigaddset(&signals, number);
  if (with_sigint && !is_ignored(SIGINT)) sigaddset(&signals, SIGINT);
  return signals;
}

const char* name_of_signal(int number) {
  if (number == SIGINT) return "Ctrl-C";
  return number == SIGTERM ? "SIGTERM" : number == SIGHUP ? "SIGHUP" : "SIGUSR1";
}

/// Runs `words` on a thread of its own, and returns once they are said, have failed or have had
/// their time. The thread may then still be at it: the caller ends the process.
void say_in_time(std::function<void()> words) {
  try {
    std::packaged_task<void()> task(std::move(words));
    const std::future<void> end = task.get_future();
    std::thread(std::move(task)).detach();
    (void)end.wait_for(kForLastWords);
  } catch (const std::system_error&) {
    // No thread could be started: the process ends without a word.
  }
}

/// Lets the signal have its default effect, as if it were neither handled nor blocked. The first
/// process of a container, which no signal ends by default, ends with its usual code.
[[noreturn]] void have_default_effect(int number) {
  std::signal(number, SIG_DFL);
  sigset_t alone;
  sigemptyset(&alone);
  sigaddset(&alone, number);
  ::pthread_sigmask(SIG_UNBLOCK, &alone, nullptr);
  ::raise(number);
  ::_exit(128 + number);
}

std::string seconds_text(milliseconds time) {
  const std::int64_t tenths = (time.count() + 50) / 100;
  return fmt::format("{}{} s", tenths / 10,
                     tenths % 10 != 0 ? fmt::format(".{}", tenths % 10) : "");
}

}  // namespace

StopLimits stop_limits(const CheckpointOptions& options, std::chrono::seconds launcher_grace) {
  const std::chrono::seconds own(options.grace_seconds);
  if (own.count() > 0) {
    if (launcher_grace.count() > 0 && own > launcher_grace)
      throw ConfigError(
          fmt::format("--grace {} is longer than the launcher waits before it kills, {} s: mlaunch "
                      "--grace {} ...",
                      own.count(), launcher_grace.count(), own.count()));
    return {own, own};
  }
  const milliseconds all = launcher_grace;
  return {all - std::min(kBeforeLauncher, all / 10), milliseconds(0)};
}

StopRequest::StopRequest(const StopLimits& limits, TooLate too_late, Interrupted interrupted)
    : limits_(limits), too_late_(std::move(too_late)), interrupted_(std::move(interrupted)) {
  hear(interrupted_ != nullptr);
}

StopRequest::StopRequest(Interrupted interrupted)
    : takes_requests_(false), interrupted_(std::move(interrupted)) {
  hear(true);
}

void StopRequest::hear(bool with_sigint) {
  const sigset_t wanted = heard_signals(with_sigint);
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &wanted, &before_); error != 0)
    fail("blocking signals", error);
  signals_ = UniqueFd(::signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC));
  end_ = UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!signals_.valid() || !end_.valid()) {
    const int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    fail("signalfd", error);
  }
  thread_ = std::thread([this] { watch(); });
}

StopRequest::~StopRequest() {
  const std::uint64_t one = 1;
  while (::write(end_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
  // Takes signals that repeat a request, so that they do not kill now. If none was heard, a first
  // signal may kill: nobody has acted on it.
  signalfd_siginfo repeated{};
  while (first_ != 0 && ::read(signals_.get(), &repeated, sizeof repeated) == sizeof repeated) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

const char* StopRequest::signal_name() const { return name_of_signal(first_); }

int StopRequest::timeout_ms() const {
  if (limit_.count() == 0) return -1;
  const auto left = std::chrono::ceil<milliseconds>(limit_ends_ - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

void StopRequest::watch() {
  for (;;) {
    pollfd ready[] = {{signals_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
    (void)::poll(ready, 2, timeout_ms());
    if (ready[1].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) == sizeof info)
      take(static_cast<int>(info.ssi_signo));
    if (limit_.count() == 0 || timeout_ms() > 0) continue;
    if (!saved_) end_too_late();
    limit_ = milliseconds(0);
  }
}

void StopRequest::end_too_late() {
  const std::string why =
      std::string(name_of_signal(first_)) + ": " + seconds_text(limit_) + " are over";
  say_in_time([this, why] { too_late_(why); });
  ::_exit(static_cast<int>(ExitCode::try_again));
}

void StopRequest::take(int number) {
  if (number == SIGINT || !takes_requests_) {
    say_in_time([this, number] { interrupted_(name_of_signal(number)); });
    have_default_effect(number);
  } else if (first_ == 0) {
    first_ = number;
    since_ = Clock::now();
    limit_ = number == SIGUSR1 ? limits_.after_sigusr1 : limits_.after_sigterm;
    if (limit_.count() > 0) limit_ends_ = since_ + limit_;
    requested_ = true;
  } else if (Clock::now() - since_ > kSameRequest) {
    have_default_effect(number);
  }
}

}  // namespace strata::train
