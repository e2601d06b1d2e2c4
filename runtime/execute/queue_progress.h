// Tells how far one queue has come in one run of a Program.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace strata::runtime {

inline constexpr std::int32_t kFinished = std::numeric_limits<std::int32_t>::max();

/// Holds the list index of the last completed instruction. One thread advances it; others wait.
class QueueProgress {
 public:
  void reset() { value_.store(-1, std::memory_order_relaxed); }
  void advance(std::int32_t index) {
    value_.store(index, std::memory_order_release);
    value_.notify_all();
  }
  [[nodiscard]] bool has_reached(std::int32_t index) const {
    return value_.load(std::memory_order_acquire) >= index;
  }
  void wait_for(std::int32_t index) const {
    std::int32_t seen = value_.load(std::memory_order_acquire);
    while (seen < index) {
      value_.wait(seen, std::memory_order_acquire);
      seen = value_.load(std::memory_order_acquire);
    }
  }

 private:
  std::atomic<std::int32_t> value_{-1};
};

}  // namespace strata::runtime
