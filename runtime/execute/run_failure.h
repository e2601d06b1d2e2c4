// Keeps the first failure of an executor, which from then on is poisoned for good.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <string>

#include "comm/communicators.h"

namespace strata::runtime {

/// All methods may be called on any thread.
class RunFailure {
 public:
  /// `peers` outlives it.
  explicit RunFailure(const comm::Communicators& peers) : peers_(peers) {}

  /// Keeps the first error, as "`what` failed: ...", tells it to the peers, and poisons. The caller
  /// wakes the executor's own threads.
  void tell(const std::string& what, const std::exception& error);
  /// Poisons without an error, when the executor is destroyed.
  void poison() { poisoned_.store(true, std::memory_order_release); }

  /// True if nothing new may start.
  [[nodiscard]] bool is_poisoned() const { return poisoned_.load(std::memory_order_acquire); }
  /// Throws the first error, if there is one.
  void rethrow() const;

 private:
  const comm::Communicators& peers_;
  mutable std::mutex mutex_;
  std::exception_ptr error_;  ///< guarded by mutex_
  std::atomic<bool> poisoned_{false};
};

}  // namespace strata::runtime
