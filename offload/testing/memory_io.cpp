#include "offload/testing/memory_io.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "offload/nvme/completion_queue.h"

namespace strata::offload {
namespace {

class MemoryIo final : public BlockIo {
 public:
  MemoryIo(std::int64_t bytes, int capacity)
      : data_(static_cast<std::size_t>(bytes)), capacity_(capacity) {}

  [[nodiscard]] int capacity() const override { return capacity_; }
  void submit(const BlockRequest& request) override {
    // Ends where the memory ends, as a file would.
    const auto size = static_cast<std::int64_t>(data_.size());
    const std::int64_t bytes = std::clamp(size - request.offset, std::int64_t{0}, request.bytes);
    if (bytes > 0) {
      std::byte* stored = data_.data() + request.offset;
      const bool read = request.direction == Direction::read;
      std::memcpy(read ? request.memory : stored, read ? stored : request.memory,
                  static_cast<std::size_t>(bytes));
    }
    done_.push({request.id, bytes});
  }
  void begin() override {}
  std::size_t reap(std::span<BlockCompletion> out) override { return done_.reap(out); }
  void wake() noexcept override { done_.wake(); }
  int register_memory(const MemorySlices&) override { return 0; }
  [[nodiscard]] int file() const override { return -1; }

 private:
  std::vector<std::byte> data_;
  int capacity_;
  CompletionQueue done_;
};

}  // namespace

std::unique_ptr<BlockIo> make_memory_io(std::int64_t bytes, int capacity) {
  return std::make_unique<MemoryIo>(bytes, capacity);
}

}  // namespace strata::offload
