// Block I/O in which a request that the test chooses goes wrong.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "offload/nvme/block_io.h"

namespace strata::offload {

/// The fault strikes the `nth` request (from 1) in `direction`, and its next `times - 1` retries
/// (requests that begin at the same offset).
struct Fault {
  enum class Kind {
    error,     ///< completes with -error_number, nothing is transferred
    short_by,  ///< transfers all but the last `bytes` bytes, rounded down to sectors
    flip,      ///< a bit of the bytes read is flipped
    hold,      ///< does not begin until release()
  };
  Kind kind = Kind::error;
  Direction direction = Direction::read;
  int nth = 1;
  int times = 1;
  int error_number = 0;
  std::int64_t bytes = 0;
};

/// Wraps another block I/O. The test calls fired() and what follows from its own thread.
class FaultyIo final : public BlockIo {
 public:
  FaultyIo(std::unique_ptr<BlockIo> inner, const Fault& fault)
      : inner_(std::move(inner)), fault_(fault) {}

  [[nodiscard]] int capacity() const override { return inner_->capacity(); }
  void submit(const BlockRequest& request) override;
  void begin() override { inner_->begin(); }
  std::size_t reap(std::span<BlockCompletion> out) override;
  void wake() noexcept override { inner_->wake(); }
  int register_memory(const MemorySlices& slices) override {
    return inner_->register_memory(slices);
  }
  [[nodiscard]] int file() const override { return inner_->file(); }

  [[nodiscard]] int fired() const { return fired_; }
  /// Waits until a request was struck.
  void wait_until_fired() const { fired_.wait(0); }
  [[nodiscard]] int requests(Direction direction) const {
    return direction == Direction::read ? reads_ : writes_;
  }
  /// Lets the held request begin.
  void release() {
    released_ = true;
    wake();
  }

 private:
  [[nodiscard]] bool strikes(const BlockRequest& request);

  std::unique_ptr<BlockIo> inner_;
  Fault fault_;
  std::atomic<int> reads_ = 0;
  std::atomic<int> writes_ = 0;
  std::atomic<int> fired_ = 0;
  std::atomic<bool> released_ = false;
  std::int64_t struck_offset_ = -1;
  std::vector<BlockCompletion> own_;
  std::vector<BlockRequest> held_;
  std::unordered_map<std::uint64_t, std::byte*> flips_;     // key: request
  std::unordered_map<std::uint64_t, std::int64_t> shorts_;  // results; key: request
};

/// Forwards to a device: the store owns this object while the test keeps the device.
class SharedIo final : public BlockIo {
 public:
  explicit SharedIo(std::shared_ptr<BlockIo> device) : device_(std::move(device)) {}

  [[nodiscard]] int capacity() const override { return device_->capacity(); }
  void submit(const BlockRequest& request) override { device_->submit(request); }
  void begin() override { device_->begin(); }
  std::size_t reap(std::span<BlockCompletion> out) override { return device_->reap(out); }
  void wake() noexcept override { device_->wake(); }
  int register_memory(const MemorySlices& slices) override {
    return device_->register_memory(slices);
  }
  [[nodiscard]] int file() const override { return device_->file(); }

 private:
  std::shared_ptr<BlockIo> device_;
};

}  // namespace strata::offload
