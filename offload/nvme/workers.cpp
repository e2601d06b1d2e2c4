#include "offload/nvme/workers.h"

#include <utility>

namespace strata::offload {

Workers::Workers(int threads) {
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  } catch (...) {
    finish();
    throw;
  }
}

Workers::~Workers() { finish(); }

void Workers::post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push(std::move(job));
  }
  changed_.notify_one();
}

void Workers::finish() noexcept {
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Workers::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return finishing_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = jobs_.pop();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace strata::offload
