// What people are told while the last save of a run fails and is tried again.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "train/run/run_listeners.h"
#include "train/run/stop_request.h"

namespace strata::train {

/// Says at the first failure all that there is to know, at each further one a line, and answers a
/// signal that asks the run to end while it waits for the next attempt. Not for several threads.
/// Borrows the listeners and `stop`; null: no signal is heard.
class SaveRetry {
 public:
  using Clock = std::chrono::steady_clock;

  /// Attempts to save `step` may begin for `limit` from now on.
  SaveRetry(std::int64_t step, std::chrono::seconds limit, const StopRequest* stop,
            const RunListeners& listeners)
      : step_(step), end_(Clock::now() + limit), stop_(stop), listeners_(listeners) {}

  [[nodiscard]] bool is_over() const { return Clock::now() >= end_; }
  /// Warns of a failed attempt. `lost`: what a run loses that ends now.
  void failed(const std::string& why, const std::string& lost);
  /// Returns when the next attempt is due, or no other may begin.
  void wait();

 private:
  /// "for 540 s (--save-retry)", or as long as the signal leaves.
  [[nodiscard]] std::string time_left() const;
  /// Says what ends it sooner, once a signal has asked the run to end.
  [[nodiscard]] std::string how_it_ends() const;
  [[nodiscard]] bool is_asked_to_stop() const { return stop_ != nullptr && stop_->requested(); }
  void answer_signal();

  std::int64_t step_;
  Clock::time_point end_;
  const StopRequest* stop_;
  const RunListeners& listeners_;
  Clock::duration pause_ = std::chrono::seconds(1);
  std::string cause_;  ///< of the newest failure, without its numbers
  std::string lost_;
  bool is_answered_ = false;
};

}  // namespace strata::train
