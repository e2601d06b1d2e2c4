// How long ranks usually need to get something done: the pauses of one phase, as far as they lie
// back at most kKept.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <vector>

namespace strata::launcher {

class Pauses {
 public:
  using Duration = std::chrono::steady_clock::duration;

  /// So many of the last pauses count. A single long one is no habit once there are 100.
  static constexpr std::size_t kKept = 500;

  void add(Duration pause) {
    last_.push_back(pause);
    if (last_.size() > kKept) last_.pop_front();
  }
  /// Returns a time that 99 of 100 pauses do not exceed: of fewer, the longest; of none, 0.
  [[nodiscard]] Duration p99() const {
    if (last_.empty()) return Duration(0);
    std::vector<Duration> sorted(last_.begin(), last_.end());
    const auto longer = static_cast<std::ptrdiff_t>(sorted.size() / 100);
    std::nth_element(sorted.begin(), sorted.end() - 1 - longer, sorted.end());
    return sorted[sorted.size() - 1 - static_cast<std::size_t>(longer)];
  }

 private:
  std::deque<Duration> last_;
};

}  // namespace strata::launcher
