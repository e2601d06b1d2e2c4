// SIGTERM, SIGUSR1 and SIGHUP as a question asked between steps: no handler.
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

/// How long a run may take from a signal to its last checkpoint; 0: as long as it takes.
struct StopLimits {
  std::chrono::milliseconds after_sigterm{0};  ///< and SIGHUP: a terminal or its connection ended
  std::chrono::milliseconds after_sigusr1{0};  ///< an early warning: no launcher counts from it
};

/// Signals that come within this of the first one are the same request: schedulers tell a launcher
/// and its ranks, and the launcher passes it on.
inline constexpr std::chrono::milliseconds kSameRequest{1000};

/// What --grace asks for, else a little less than the launcher's grace, which kills after it.
/// Throws ConfigError when --grace is longer than that.
StopLimits stop_limits(const CheckpointOptions& options, std::chrono::seconds launcher_grace);

/// Blocks the signals in the calling thread and in threads it starts afterwards, and takes them in
/// a thread of its own, so that they count from when they come. One that comes later than
/// kSameRequest after the first has its default effect: who asks a second time means now. Signals
/// that were ignored stay ignored, as SIGHUP is under nohup.
class StopRequest {
 public:
  /// Told of SIGINT, on a thread of its own, before that has its usual effect: the process ends.
  using Interrupted = std::function<void()>;
  /// Told that the limit is over, with "SIGTERM: 5 s are over", on a thread of its own. Ends the
  /// process.
  using TooLate = std::function<void(const std::string& why)>;

  /// Throws HostError. Without `interrupted` SIGINT is left alone.
  StopRequest(const StopLimits& limits, TooLate too_late, Interrupted interrupted = {});
  /// Restores the thread's signal mask.
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  /// True from the first signal on.
  [[nodiscard]] bool requested() const { return requested_.load(); }
  /// What was to be saved is saved: the limit counts no more.
  void saved() { saved_.store(true); }

 private:
  using Clock = std::chrono::steady_clock;
  void watch();
  void take(int number);
  [[nodiscard]] int timeout_ms() const;

  StopLimits limits_;
  TooLate too_late_;
  Interrupted interrupted_;
  sigset_t before_{};
  UniqueFd signals_;
  UniqueFd end_;
  std::atomic<bool> requested_{false};
  std::atomic<bool> saved_{false};
  // State of the watching thread.
  int first_ = 0;
  Clock::time_point since_;
  std::chrono::milliseconds limit_{0};
  std::thread thread_;
};

}  // namespace strata::train
