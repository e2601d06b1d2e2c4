// What becomes of an executor when something fails: it is poisoned, for good.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <string>

#include "comm/communicators.h"

namespace strata::runtime {

/// Any thread.
class RunFailure {
 public:
  /// `peers` outlives it.
  explicit RunFailure(const comm::Communicators& peers) : peers_(peers) {}

  /// Keeps the first error, as "`what` failed: ...", and tells it to the peers; poisons. Waking the
  /// executor's own threads is the caller's affair.
  void tell(const std::string& what, const std::exception& error);
  /// Poisons without an error: the executor goes.
  void poison() { poisoned_.store(true, std::memory_order_release); }

  /// Whether nothing new may start.
  [[nodiscard]] bool is_poisoned() const { return poisoned_.load(std::memory_order_acquire); }
  /// Throws the first error, where there is one.
  void rethrow() const;

 private:
  const comm::Communicators& peers_;
  mutable std::mutex mutex_;
  std::exception_ptr error_;  ///< under mutex_
  std::atomic<bool> poisoned_{false};
};

}  // namespace strata::runtime
