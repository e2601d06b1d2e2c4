#include "offload/nvme/probe.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/testing/test_directory.h"
#include "offload/nvme/open_store.h"
#include "offload/testing/memory_io.h"
#include "offload/testing/test_devices.h"
#include "runtime/program/arena_alignment.h"

namespace strata::offload {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

void expect_untouched(NvmeStore& store) {
  EXPECT_EQ(store.counters().read_bytes, 0);
  EXPECT_EQ(store.counters().written_bytes, 0);
  std::vector<std::byte> in(static_cast<std::size_t>(store.bytes()), std::byte{1});
  store.read_bytes(0, in, "all");
  EXPECT_EQ(in, std::vector<std::byte>(static_cast<std::size_t>(store.bytes())));
}

TEST(Probe, TakesAtMostHalfOfWhatIsFree) {
  const TestDirectory directory;
  const std::int64_t bytes = probe_bytes({directory.path()});
  EXPECT_GT(bytes, 0);
  EXPECT_LE(bytes, 256 * kMiB);
  EXPECT_EQ(bytes % runtime::kDiskAlignment, 0);
  EXPECT_EQ(probe_bytes({directory.path(), directory / "missing"}), 0);
}

TEST(Probe, MeasuresAndLeavesTheStoreAsNew) {
  const TestDirectory directory;
  const auto store =
      open_store({.directories = {directory.path(), directory.path()}, .bytes = 40 * kMiB + 4096});
  const machine::Disk result = probe(*store, std::chrono::milliseconds(50));
  EXPECT_GT(result.read_rate, 0);
  EXPECT_GT(result.write_rate, 0);
  EXPECT_GT(result.mixed_rate, 0);
  EXPECT_EQ(result.read_rate.source, machine::Source::measured);
  EXPECT_EQ(store->settings(), (TransferSettings{result.request_bytes, result.depth}));
  EXPECT_GE(result.request_bytes, kMiB);
  EXPECT_LE(result.request_bytes, 4 * kMiB);
  expect_untouched(*store);
}

/// Memory that records the sizes of requests; read `sizes` when the store is gone.
class NotingIo final : public BlockIo {
 public:
  NotingIo(std::unique_ptr<BlockIo> inner, std::set<std::int64_t>& sizes)
      : inner_(std::move(inner)), sizes_(sizes) {}
  [[nodiscard]] int capacity() const override { return inner_->capacity(); }
  void submit(const BlockRequest& request) override {
    sizes_.insert(request.bytes);
    inner_->submit(request);
  }
  void begin() override { inner_->begin(); }
  std::size_t reap(std::span<BlockCompletion> out) override { return inner_->reap(out); }
  void wake() noexcept override { inner_->wake(); }
  int register_memory(const MemorySlices& slices) override {
    return inner_->register_memory(slices);
  }
  [[nodiscard]] int file() const override { return inner_->file(); }

 private:
  std::unique_ptr<BlockIo> inner_;
  std::set<std::int64_t>& sizes_;
};

TEST(Probe, TriesRequestsOfSeveralSizes) {
  std::set<std::int64_t> sizes;
  {
    std::vector<StoreDevice> devices;
    devices.push_back({"memory", std::make_unique<NotingIo>(make_memory_io(32 * kMiB, 16), sizes)});
    NvmeStore store(std::move(devices), 32 * kMiB, {.checksums = false});
    probe(store, std::chrono::milliseconds(9));
  }
  EXPECT_EQ(sizes, (std::set<std::int64_t>{kMiB, 2 * kMiB, 4 * kMiB}));
}

TEST(Probe, StaysWithinItsMemory) {
  std::set<std::int64_t> sizes;
  std::vector<StoreDevice> devices;
  devices.push_back({"memory", std::make_unique<NotingIo>(make_memory_io(32 * kMiB, 16), sizes)});
  NvmeStore store(std::move(devices), 32 * kMiB, {.checksums = false});
  const std::int64_t least = 4 * runtime::kDiskAlignment;
  EXPECT_GT(probe(store, std::chrono::milliseconds(9), least).read_rate, 0);
  EXPECT_EQ(sizes, std::set<std::int64_t>{runtime::kDiskAlignment});
  EXPECT_EQ(probe(store, std::chrono::milliseconds(9), least - 1).read_rate, 0);
}

TEST(Probe, DoesNotMeasureAStoreOfAFewSectors) {
  const auto store = make_store({}, "", 3 * 4096);
  const machine::Disk result = probe(*store);
  EXPECT_EQ(result.read_rate, 0);
  EXPECT_EQ(store->settings(), (TransferSettings{result.request_bytes, result.depth}));
  expect_untouched(*store);
}

}  // namespace
}  // namespace strata::offload
