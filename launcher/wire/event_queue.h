// Events from other threads for one that polls: whatever waits makes a descriptor readable.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/system_call.h"
#include "core/unique_fd.h"

namespace strata::launcher {

template <typename Event>
class EventQueue {
 public:
  /// Throws HostError if the system has no descriptor left.
  EventQueue() : fd_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "making an eventfd")) {}

  [[nodiscard]] int poll_fd() const { return fd_.get(); }

  /// Any thread may call.
  void put(Event event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    const std::uint64_t one = 1;
    // It fails only where the counter is full, and then the descriptor is readable.
    (void)!::write(fd_.get(), &one, sizeof one);
  }

  /// Returns all that wait, oldest first.
  std::vector<Event> take() {
    const std::lock_guard lock(mutex_);
    std::uint64_t count = 0;
    (void)!::read(fd_.get(), &count, sizeof count);
    return std::exchange(events_, {});
  }

 private:
  UniqueFd fd_;
  std::mutex mutex_;
  std::vector<Event> events_;
};

}  // namespace strata::launcher
