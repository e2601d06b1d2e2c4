// Completions on their way from threads that did the work to the one that reaps.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>

#include "offload/nvme/block_io.h"

namespace strata::offload {

/// Any thread may call anything.
class CompletionQueue {
 public:
  void push(const BlockCompletion& completion) {
    {
      const std::lock_guard lock(mutex_);
      ready_.push_back(completion);
    }
    changed_.notify_one();
  }

  void wake() noexcept {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    changed_.notify_one();
  }

  /// As BlockIo::reap.
  std::size_t reap(std::span<BlockCompletion> out) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return woken_ || !ready_.empty(); });
    woken_ = false;
    const std::size_t count = std::min(out.size(), ready_.size());
    std::copy_n(ready_.begin(), count, out.begin());
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<BlockCompletion> ready_;
  bool woken_ = false;
};

}  // namespace strata::offload
