#include "offload/nvme/lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <latch>
#include <utility>
#include <vector>

#include "offload/nvme/disk_alignment.h"
#include "offload/testing/memory_io.h"
#include "runtime/program/arena_alignment.h"

namespace strata::offload {
namespace {

constexpr std::int64_t kBytes = runtime::kDiskAlignment;

/// Memory that returns no completion before `opened`, and counts requests that have begun.
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
  int begun = 0;                   // used by the lane's thread
  std::vector<int> begun_by_then;  // value of `begun` when each piece ended
  begun_by_then.reserve(2);
  std::vector<TransferPiece> pieces(2);
  Lane lane(std::make_unique<GatedIo>(opened, begun), 1, [&](TransferPiece&, int error_number) {
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

/// Memory that transfers at most `most` bytes of each request, and fails after too many requests.
class ShorteningIo final : public BlockIo {
 public:
  ShorteningIo(std::int64_t most, int requests, std::vector<BlockRequest>& seen)
      : most_(most), requests_(requests), seen_(seen) {}

  [[nodiscard]] int capacity() const override { return inner_->capacity(); }
  void submit(const BlockRequest& request) override {
    seen_.push_back(request);
    BlockRequest shorter = request;
    shorter.bytes = std::min(request.bytes, most_);
    inner_->submit(shorter);
  }
  void begin() override { inner_->begin(); }
  std::size_t reap(std::span<BlockCompletion> out) override {
    const std::size_t count = inner_->reap(out);
    if (static_cast<int>(seen_.size()) > requests_)
      for (BlockCompletion& completion : out.first(count)) completion.result = -EIO;
    return count;
  }
  void wake() noexcept override { inner_->wake(); }
  int register_memory(const MemorySlices& slices) override {
    return inner_->register_memory(slices);
  }
  [[nodiscard]] int file() const override { return inner_->file(); }

 private:
  std::unique_ptr<BlockIo> inner_ = make_memory_io(8 * kBytes, 8);
  std::int64_t most_;
  int requests_;
  std::vector<BlockRequest>& seen_;
};

TEST(Lane, GoesOnWhereEachOfManyShortTransfersEnded) {
  constexpr int kParts = 5;
  for (const std::int64_t beyond : {0, 100}) {  // bytes of a part that ends unaligned
    const AlignedMemory written(kParts * kBytes), read(kParts * kBytes);
    for (std::size_t i = 0; i < written.bytes().size(); ++i)
      written.bytes()[i] = static_cast<std::byte>(i * 7 + i / 251);
    std::vector<BlockRequest> seen;
    std::latch ended(2);
    Lane* on = nullptr;
    std::vector<TransferPiece> pieces(2);
    int errors = 0;
    Lane lane(std::make_unique<ShorteningIo>(kBytes + beyond, 2 * kParts, seen), 1,
              [&](TransferPiece& piece, int error_number) {
                errors += error_number != 0;
                if (&piece == &pieces[0]) on->push(pieces[1]);
                ended.count_down();
              });
    on = &lane;
    for (TransferPiece& piece : pieces) {
      const bool write = &piece == &pieces[0];
      piece.direction = write ? Direction::write : Direction::read;
      piece.device_offset = kBytes;
      piece.memory = (write ? written : read).bytes().data();
      piece.bytes = kParts * kBytes;
    }
    lane.push(pieces[0]);
    ended.wait();
    EXPECT_EQ(errors, 0);
    ASSERT_EQ(seen.size(), 2u * kParts);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const auto done = static_cast<std::int64_t>(i % kParts) * kBytes;
      EXPECT_EQ(seen[i].offset, kBytes + done);
      EXPECT_EQ(seen[i].bytes, kParts * kBytes - done);
    }
    EXPECT_TRUE(std::ranges::equal(written.bytes(), read.bytes()));
  }
}

}  // namespace
}  // namespace strata::offload
