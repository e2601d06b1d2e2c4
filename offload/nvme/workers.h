// A few threads that run jobs in the order of posting.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "offload/nvme/ring_queue.h"

namespace strata::offload {

class Workers {
 public:
  explicit Workers(int threads);
  /// Waits until all jobs have run and the threads have ended.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Any thread may call. Jobs must not throw. Jobs that hold two pointers need no allocation.
  void post(std::function<void()> job);
  /// Waits until all jobs have run and the threads have ended; jobs posted later do not run.
  void finish() noexcept;

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  RingQueue<std::function<void()>> jobs_;
  bool finishing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace strata::offload
