// A queue of completions from threads that do transfers to the thread that reaps.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <span>

#include "offload/nvme/block_io.h"
#include "offload/nvme/ring_queue.h"

namespace strata::offload {

/// Any thread may call any member.
class CompletionQueue {
 public:
  void push(const BlockCompletion& completion) {
    {
      const std::lock_guard lock(mutex_);
      ready_.push(completion);
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

  /// Waits for a completion or for wake; returns how many it put into `out` (BlockIo::reap).
  std::size_t reap(std::span<BlockCompletion> out) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return woken_ || !ready_.empty(); });
    woken_ = false;
    const std::size_t count = std::min(out.size(), ready_.size());
    for (std::size_t i = 0; i < count; ++i) out[i] = ready_.pop();
    return count;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  RingQueue<BlockCompletion> ready_;
  bool woken_ = false;
};

}  // namespace strata::offload
