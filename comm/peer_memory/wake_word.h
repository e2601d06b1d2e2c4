// A futex word that counts events and can be poisoned. Works between threads, and between processes
// that map the same memory.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace strata::comm {

/// Low 31 bits: number of events so far (wraps); top bit: poisoned, nobody shall wait any more.
/// Zero-filled memory is a valid new word. Waiters sleep in the kernel.
class WakeWord {
 public:
  static constexpr std::uint32_t kPoison = 0x80000000u;

  /// Returns the number of events. A thread that sees a new count sees all writes before `advance`.
  [[nodiscard]] std::uint32_t count() const { return load() & ~kPoison; }
  /// Sequentially consistent, as `poison` is.
  [[nodiscard]] bool poisoned() const {
    return (value_.load(std::memory_order_seq_cst) & kPoison) != 0;
  }

  /// Counts one event and wakes all waiters.
  void advance();
  /// Wakes all waiters and keeps others from waiting.
  void poison();
  /// Sleeps until `count() != seen`, or poison, or `limit`; may return early. Returns true if
  /// `limit` passed.
  bool sleep(std::uint32_t seen, std::chrono::milliseconds limit);

 private:
  [[nodiscard]] std::uint32_t load() const { return value_.load(std::memory_order_acquire); }
  void wake_all();
  std::atomic<std::uint32_t> value_;
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(WakeWord) == 4);

}  // namespace strata::comm
