// Turns SIGTERM, SIGUSR1 and SIGHUP into a question that is asked between steps, without a handler.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include "core/unique_fd.h"
#include "train/config/options.h"

namespace strata::train {

/// The time that a run may take from a signal to its last checkpoint; 0: no limit.
struct StopLimits {
  std::chrono::milliseconds after_sigterm{0};  ///< also SIGHUP: a terminal or connection ended
  std::chrono::milliseconds after_sigusr1{0};  ///< an early warning, from which no launcher counts
};

/// Signals within this time of the first are the same request: schedulers signal a launcher and its
/// ranks, and the launcher passes it on.
inline constexpr std::chrono::milliseconds kSameRequest{1000};

/// The limits that --grace sets, else a little less than the launcher's grace, after which it
/// kills. Throws ConfigError if --grace is longer than that.
StopLimits stop_limits(const CheckpointOptions& options, std::chrono::seconds launcher_grace);

/// The time that last words have. A reader of the output that stands still, or a disk that does not
/// answer, may hold them up, but not the end of the process.
inline constexpr std::chrono::milliseconds kForLastWords{1000};

/// Blocks the signals in the calling thread and in threads that it starts afterwards, and takes
/// them in a thread of its own, so that time counts from their arrival. A signal more than
/// kSameRequest after the first has its default effect: a second request means now. Signals that
/// were ignored stay ignored, as SIGHUP is under nohup.
class StopRequest {
 public:
  /// Says last words, on a thread of its own: with "Ctrl-C" or the name of a signal that is no
  /// request. Then, or after kForLastWords, the signal's usual effect ends the process.
  using Interrupted = std::function<void(const char* signal)>;
  /// Says last words, on a thread of its own, when the limit is over: "SIGTERM: 5 s are over".
  /// Then, or after kForLastWords, the process ends with the code of "try again".
  using TooLate = std::function<void(const std::string& why)>;

  /// Throws HostError. Without `interrupted`, leaves SIGINT alone.
  StopRequest(const StopLimits& limits, TooLate too_late, Interrupted interrupted = {});
  /// No signal is a request then: `interrupted` hears of each, SIGINT too. Throws HostError.
  explicit StopRequest(Interrupted interrupted);
  /// Restores the thread's signal mask.
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  /// True once a signal has come.
  [[nodiscard]] bool requested() const { return requested_.load(); }
  /// The name of that signal, and the end of its limit (the clock's last moment: it has none). Call
  /// them only once requested().
  [[nodiscard]] const char* signal_name() const;
  [[nodiscard]] std::chrono::steady_clock::time_point limit_ends() const { return limit_ends_; }
  /// Says that everything is saved, so that the limit no longer counts.
  void saved() { saved_.store(true); }

 private:
  using Clock = std::chrono::steady_clock;
  void hear(bool with_sigint);
  void watch();
  void take(int number);
  [[noreturn]] void end_too_late();
  [[nodiscard]] int timeout_ms() const;

  bool takes_requests_ = true;
  StopLimits limits_;
  TooLate too_late_;
  Interrupted interrupted_;
  sigset_t before_{};
  UniqueFd signals_;
  UniqueFd end_;
  std::atomic<bool> requested_{false};
  std::atomic<bool> saved_{false};
  // Written before requested_, and not again.
  int first_ = 0;
  Clock::time_point limit_ends_ = Clock::time_point::max();
  // State of the watching thread.
  Clock::time_point since_;
  std::chrono::milliseconds limit_{0};
  std::thread thread_;
};

}  // namespace strata::train
