// Notices that nobody reads what mlaunch prints, so that ranks wait in their writes: a terminal
// that was stopped (Ctrl-S), a pager, a log on a disk that does not answer.
#pragma once

#include <chrono>
#include <optional>

namespace strata::launcher {

class UnreadOutput {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Who does not read for so long is spoken of.
  static constexpr std::chrono::seconds kQuiet{5};

  /// `is_full`: ranks are not read now. Returns true once, when that has lasted for long.
  [[nodiscard]] bool is_news(TimePoint now, bool is_full) {
    if (!is_full) since_.reset();
    if (is_full && !since_) since_ = now;
    if (said_ || !since_ || now < *since_ + kQuiet) return false;
    said_ = true;
    return true;
  }

 private:
  std::optional<TimePoint> since_;
  bool said_ = false;
};

}  // namespace strata::launcher
