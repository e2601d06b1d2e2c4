#include "offload/nvme/lane.h"

#include <gtest/gtest.h>

#include <latch>
#include <utility>
#include <vector>

#include "offload/nvme/aligned_memory.h"
#include "offload/nvme/memory_io.h"

namespace strata::offload {
namespace {

constexpr std::int64_t kBytes = runtime::kDiskAlignment;

/// Memory that gives nothing back before `opened`, and counts what has begun.
class GatedIo final : public BlockIo {
 public:
  GatedIo(std::latch& opened, int& begun) : opened_(opened), begun_(begun) {}

  [[nodiscard]] int capacity() const override { return inner_->capacity(); }
  void submit(const BlockRequest& request) override {
    ++noted_;
    inner_->submit(request);
  }
  void begin() override {
    begun_ += std::exchange(noted_, 0);
    inner_->begin();
  }
  std::size_t reap(std::span<BlockCompletion> out) override {
    begin();
    opened_.wait();
    return inner_->reap(out);
  }
  void wake() noexcept override { inner_->wake(); }
  int register_memory(const MemorySlices& slices) override {
    return inner_->register_memory(slices);
  }
  [[nodiscard]] int file() const override { return inner_->file(); }

 private:
  std::unique_ptr<BlockIo> inner_ = make_memory_io(2 * kBytes, 8);
  std::latch& opened_;
  int& begun_;
  int noted_ = 0;
};

TEST(Lane, WhatWaitsBeginsBeforeAnyoneHearsOfWhatEnded) {
  const AlignedMemory memory(2 * kBytes);
  std::latch opened(1);
  std::latch ended(2);
  int begun = 0;                   // of the lane's thread
  std::vector<int> begun_by_then;  // when each piece ended
  begun_by_then.reserve(2);
  std::vector<Piece> pieces(2);
  Lane lane(std::make_unique<GatedIo>(opened, begun), 1, [&](Piece&, int error_number) {
    EXPECT_EQ(error_number, 0);
    begun_by_then.push_back(begun);
    ended.count_down();
  });
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i) * kBytes;
    pieces[i].device_offset = at;
    pieces[i].memory = memory.bytes().data() + at;
    pieces[i].bytes = kBytes;
    lane.push(pieces[i]);
  }
  opened.count_down();
  ended.wait();
  EXPECT_EQ(begun_by_then, (std::vector<int>{2, 2}));
}

}  // namespace
}  // namespace strata::offload
