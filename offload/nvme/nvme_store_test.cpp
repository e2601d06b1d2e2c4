// Tests of the whole store over every kind of device.
#include "offload/nvme/nvme_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "core/error.h"
#include "core/testing/test_directory.h"
#include "offload/nvme/disk_alignment.h"
#include "offload/testing/test_devices.h"
#include "runtime/program/arena_alignment.h"

namespace strata::offload {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kSector = runtime::kDiskAlignment;

void fill(const AlignedMemory& memory, std::uint64_t seed) {
  const auto values = pattern(static_cast<std::int64_t>(memory.bytes().size()), seed);
  std::memcpy(memory.bytes().data(), values.data(), values.size());
}

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

class NvmeStoreOn : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
  std::unique_ptr<NvmeStore> make(std::int64_t bytes, const StoreOptions& options = {}) {
    return make_store(GetParam(), directory_.path(), bytes, options);
  }
  TestDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(EveryDevice, NvmeStoreOn, testing::ValuesIn(all_device_kinds()),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(NvmeStoreOn, ReadsBackWhatWasWrittenAndCountsIt) {
  const auto store = make(40 * kMiB);
  // Neither end is on a block border, and every device gets some bytes.
  const std::int64_t offset = kMiB / 2 + kSector;
  const AlignedMemory out(33 * kMiB - 3 * kSector);
  fill(out, 1);
  store->wait(store->start_write(offset, out.bytes(), "tensor a"));
  const AlignedMemory in(static_cast<std::int64_t>(out.bytes().size()));
  store->wait(store->start_read(offset, in.bytes(), "tensor a"));
  EXPECT_TRUE(same(in.bytes(), out.bytes()));
  EXPECT_EQ(store->counters().written_bytes, 33 * kMiB - 3 * kSector);
  EXPECT_EQ(store->counters().read_bytes, 33 * kMiB - 3 * kSector);
}

TEST_P(NvmeStoreOn, OtherBordersCostNothingWhereTheOldBytesAreDiscarded) {
  const auto store = make(4 * kMiB);
  const AlignedMemory large(kMiB / 2), small(kMiB / 4);
  fill(large, 1);
  fill(small, 2);
  store->wait(store->start_write(0, large.bytes(), "large"));
  store->discard(0, kMiB / 4);
  store->wait(store->start_write(0, small.bytes(), "small"));
  EXPECT_EQ(store->counters().read_bytes, 0);
  const AlignedMemory in(kMiB / 4);
  store->wait(store->start_read(0, in.bytes(), "small"));
  EXPECT_TRUE(same(in.bytes(), small.bytes()));
}

TEST_P(NvmeStoreOn, OtherBordersReadAMebibyteOnceMore) {
  const auto store = make(4 * kMiB);
  const AlignedMemory large(4 * kMiB), small(kSector);
  fill(large, 1);
  store->wait(store->start_write(0, large.bytes(), "large"));
  for (int time = 0; time < 2; ++time) {
    fill(small, 2);
    store->wait(store->start_write(kMiB, small.bytes(), "small"));
    EXPECT_EQ(store->counters().read_bytes, kMiB);
  }
}

TEST_P(NvmeStoreOn, BytesNeverWrittenReadAsZero) {
  const auto store = make(16 * kMiB);
  const AlignedMemory out(3 * kMiB);
  fill(out, 2);
  store->wait(store->start_write(2 * kMiB + kSector, out.bytes(), "the middle"));
  const AlignedMemory in(16 * kMiB);
  fill(in, 3);
  store->wait(store->start_read(0, in.bytes(), "everything"));
  std::vector<std::byte> expected(16 * kMiB);
  std::memcpy(expected.data() + 2 * kMiB + kSector, out.bytes().data(), out.bytes().size());
  EXPECT_TRUE(same(in.bytes(), expected));
  store->forget();
  store->wait(store->start_read(0, in.bytes(), "everything"));
  EXPECT_TRUE(same(in.bytes(), std::vector<std::byte>(16 * kMiB)));
}

/// Writes and reads random ranges, several at once, and compares with the same on plain memory.
void random_transfers(NvmeStore& store, std::int64_t begin, std::int64_t end, std::uint64_t seed,
                      int rounds) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> expected(static_cast<std::size_t>(end - begin));
  const auto below = [&random](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  for (int round = 0; round < rounds; ++round) {
    // Cuts the space at random sectors into ranges that share no byte.
    std::vector<std::int64_t> cuts{0, end - begin};
    for (int i = 0; i < 6; ++i) cuts.push_back(below((end - begin) / kSector) * kSector);
    std::sort(cuts.begin(), cuts.end());
    struct Started {
      AlignedMemory memory;
      std::int64_t offset;
      bool read;
      runtime::Disk::Ticket ticket;
    };
    std::vector<Started> started;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (cuts[i] == cuts[i + 1]) continue;
      AlignedMemory memory(cuts[i + 1] - cuts[i]);
      const bool read = below(2) == 0;
      runtime::Disk::Ticket ticket = 0;
      if (read) {
        ticket = store.start_read(begin + cuts[i], memory.bytes(), "random read");
      } else {
        fill(memory, random());
        std::memcpy(expected.data() + cuts[i], memory.bytes().data(), memory.bytes().size());
        ticket = store.start_write(begin + cuts[i], memory.bytes(), "random write");
      }
      started.push_back({std::move(memory), cuts[i], read, ticket});
    }
    std::shuffle(started.begin(), started.end(), random);
    for (const Started& one : started) {
      store.wait(one.ticket);
      if (one.read) {
        const std::span<const std::byte> wanted(expected.data() + one.offset,
                                                one.memory.bytes().size());
        ASSERT_TRUE(same(one.memory.bytes(), wanted)) << "round " << round << " seed " << seed;
      }
    }
  }
}

TEST_P(NvmeStoreOn, RandomRangesOfSeveralThreadsKeepTheirBytes) {
  // The border of the two threads' spaces is in the middle of a block.
  const auto store = make(24 * kMiB, {.settings = {.request_bytes = kMiB, .depth = 4}});
  const std::int64_t border = 11 * kMiB + 5 * kSector;
  std::thread other([&] { random_transfers(*store, border, 24 * kMiB, 7, 8); });
  random_transfers(*store, 0, border, 8, 8);
  other.join();
}

TEST_P(NvmeStoreOn, RandomRangesWithoutChecksums) {
  const auto store = make(12 * kMiB, {.checksums = false});
  random_transfers(*store, 0, 12 * kMiB, 9, 10);
}

TEST_P(NvmeStoreOn, LargerRequestsAndRegisteredMemory) {
  const auto store = make(24 * kMiB, {.settings = {.request_bytes = 4 * kMiB, .depth = 2}});
  const AlignedMemory window(20 * kMiB);
  // Registers two ranges with a gap; one transfer crosses the gap.
  const std::vector<std::span<std::byte>> ranges{window.bytes().first(7 * kMiB + kSector),
                                                 window.bytes().subspan(9 * kMiB)};
  if (!store->register_memory(ranges)) GTEST_SKIP() << store->notes().front();
  fill(window, 4);
  store->wait(store->start_write(kSector, window.bytes(), "window"));
  const auto expected = pattern(20 * kMiB, 4);
  std::memset(window.bytes().data(), 0, window.bytes().size());
  store->wait(store->start_read(kSector, window.bytes(), "window"));
  EXPECT_TRUE(same(window.bytes(), expected));
  ASSERT_TRUE(store->register_memory({}));
  store->wait(store->start_read(kSector, window.bytes(), "window"));
  EXPECT_TRUE(same(window.bytes(), expected));
  EXPECT_TRUE(store->notes().empty());
}

TEST_P(NvmeStoreOn, RangesOfBytesOfSeveralThreadsMayShareSectors) {
  const auto store = make(12 * kMiB);
  constexpr std::int64_t kRange = 9 * kMiB + 777;
  const auto expected = pattern(kRange, 5);
  const std::int64_t offset = 1234;
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      // Each thread writes every third of pieces of odd sizes.
      std::int64_t at = 0;
      for (int i = 0; at < kRange; ++i) {
        const std::int64_t bytes = std::min(kRange - at, std::int64_t{300'001} + i * 17'003);
        if (i % 3 == t)
          store->write_bytes(offset + at,
                             std::span(expected).subspan(static_cast<std::size_t>(at),
                                                         static_cast<std::size_t>(bytes)),
                             "weights");
        at += bytes;
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<std::byte> in(kRange);
  store->read_bytes(offset, in, "weights");
  EXPECT_TRUE(same(in, expected));
  std::vector<std::byte> around(3);
  store->read_bytes(offset - 3, around, "before");
  EXPECT_TRUE(same(around, std::vector<std::byte>(3)));
  store->read_bytes(offset + kRange, around, "after");
  EXPECT_TRUE(same(around, std::vector<std::byte>(3)));
}

TEST_P(NvmeStoreOn, ATransferOfNoBytesCompletes) {
  const auto store = make(kMiB);
  store->wait(store->start_write(kMiB, {}, "nothing"));
  store->wait(store->start_read(0, {}, "nothing"));
  store->write_bytes(5, {}, "nothing");
  EXPECT_EQ(store->counters().written_bytes, 0);
}

TEST_P(NvmeStoreOn, MoreTransfersThanAreUnderWayAtATime) {
  const auto store = make(8 * kMiB, {.most_transfers = 3});
  const AlignedMemory out(8 * kMiB);
  fill(out, 6);
  std::vector<runtime::Disk::Ticket> tickets;
  for (std::int64_t i = 0; i < 64; ++i)
    tickets.push_back(store->start_write(
        i * kMiB / 8, out.bytes().subspan(static_cast<std::size_t>(i * kMiB / 8), kMiB / 8),
        "part"));
  for (const auto ticket : tickets) store->wait(ticket);
  const AlignedMemory in(8 * kMiB);
  store->wait(store->start_read(0, in.bytes(), "whole"));
  EXPECT_TRUE(same(in.bytes(), out.bytes()));
}

TEST_P(NvmeStoreOn, MayGoWhileTransfersAreUnderWay) {
  const AlignedMemory out(8 * kMiB);
  auto store = make(8 * kMiB, {.settings = {.request_bytes = kMiB, .depth = 2}});
  store->start_write(0, out.bytes(), "never waited for");
  store.reset();
}

TEST_P(NvmeStoreOn, RefusesWhatIsNotAlignedOrNotThere) {
  const auto store = make(2 * kMiB);
  const AlignedMemory memory(kMiB);
  const auto refused = [&](std::int64_t offset, std::span<std::byte> to) {
    return message_of<InternalError>([&] { store->start_read(offset, to, "tensor b"); });
  };
  EXPECT_EQ(refused(512, memory.bytes()),
            "tensor b: a disk transfer of 1048576 bytes at 512 is not aligned to 4096");
  EXPECT_NE(refused(0, memory.bytes().subspan(64, kSector)), "no error");
  EXPECT_NE(refused(0, memory.bytes().first(100)), "no error");
  EXPECT_EQ(refused(kMiB + kSector, memory.bytes()),
            "tensor b: a disk transfer of 1048576 bytes at 1052672 leaves the space of 2097152 "
            "bytes");
  EXPECT_NE(refused(-kSector, memory.bytes()), "no error");
  store->wait(store->start_read(0, memory.bytes(), "tensor b"));
  EXPECT_EQ(message_of<InternalError>([&] { store->wait(0); }),
            "disk transfer 0 was waited for before");
}

}  // namespace
}  // namespace strata::offload
