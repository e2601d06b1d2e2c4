#include "train/inspect/batches.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace strata::train {

void for_each_batch(std::span<const std::int64_t> piece_bytes, int threads,
                    const std::function<void(std::size_t first, std::size_t end)>& body) {
  std::mutex mutex;
  std::size_t next = 0;
  std::size_t failed = piece_bytes.size();
  std::exception_ptr error;
  const auto take = [&] {
    const std::lock_guard lock(mutex);
    const std::size_t first = next;
    std::int64_t bytes = 0;
    while (next < piece_bytes.size() && (next == first || bytes + piece_bytes[next] <= kPartBytes))
      bytes += piece_bytes[next++];
    return std::pair(first, next);
  };
  const auto work = [&] {
    std::pair<std::size_t, std::size_t> batch;
    try {
      while ((batch = take()).first < batch.second) body(batch.first, batch.second);
    } catch (...) {
      // Batches are taken in order, so some thread has taken each one before the failed one.
      const std::lock_guard lock(mutex);
      next = piece_bytes.size();
      if (error != nullptr && batch.first > failed) return;
      failed = batch.first;
      error = std::current_exception();
    }
  };
  std::vector<std::jthread> helpers;
  for (int i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  helpers.clear();
  if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace strata::train
