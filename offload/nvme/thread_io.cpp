#include "offload/nvme/thread_io.h"

#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "offload/nvme/completion_queue.h"
#include "offload/nvme/ring_queue.h"
#include "offload/nvme/workers.h"

namespace strata::offload {
namespace {

std::int64_t transfer(int file, const BlockRequest& request) {
  const auto bytes = static_cast<std::size_t>(request.bytes);
  const ssize_t result = request.direction == Direction::read
                             ? ::pread(file, request.memory, bytes, request.offset)
                             : ::pwrite(file, request.memory, bytes, request.offset);
  return result < 0 ? -errno : result;
}

class ThreadIo final : public BlockIo {
 public:
  ThreadIo(UniqueFd file, int capacity, int threads)
      : file_(std::move(file)), capacity_(capacity), workers_(threads) {}

  [[nodiscard]] int capacity() const override { return capacity_; }
  void submit(const BlockRequest& request) override {
    {
      const std::lock_guard lock(mutex_);
      requests_.push(request);
    }
    workers_.post([this] { run_one(); });
  }
  void begin() override {}
  std::size_t reap(std::span<BlockCompletion> out) override { return done_.reap(out); }
  void wake() noexcept override { done_.wake(); }
  int register_memory(const MemorySlices&) override { return 0; }
  [[nodiscard]] int file() const override { return file_.get(); }

 private:
  void run_one() {
    BlockRequest request;
    {
      const std::lock_guard lock(mutex_);
      request = requests_.pop();
    }
    done_.push({request.id, transfer(file_.get(), request)});
  }

  UniqueFd file_;
  int capacity_;
  CompletionQueue done_;
  std::mutex mutex_;
  RingQueue<BlockRequest> requests_;
  Workers workers_;
};

}  // namespace

std::unique_ptr<BlockIo> make_thread_io(UniqueFd file, int capacity, int threads) {
  return std::make_unique<ThreadIo>(std::move(file), capacity, threads);
}

}  // namespace strata::offload
