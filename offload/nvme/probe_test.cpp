#include "offload/nvme/probe.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/testing/test_directory.h"
#include "offload/nvme/open_store.h"
#include "offload/testing/faulty_io.h"
#include "offload/testing/fresh_memory.h"
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

/// A store on memory where a write of the probe fails after a read beside it was held.
class FailingProbe : public testing::Test {
 protected:
  static constexpr std::int64_t kSpace = 32 * kMiB;
  static constexpr std::int64_t kWindow = kSpace / 2;

  void open(std::chrono::milliseconds stuck_after) {
    std::vector<StoreDevice> devices;
    devices.push_back({"memory", std::make_unique<SharedIo>(failing_)});
    store_ = std::make_unique<NvmeStore>(
        std::move(devices), kSpace, StoreOptions{.checksums = false, .stuck_after = stuck_after});
  }
  /// Returns the message of the probe's error.
  std::string probe_it() {
    return message_of<IoError>([this] { probe(*store_, std::chrono::milliseconds(9)); });
  }

  // The probe fills the space with 32 requests, then has transfers of four requests each under way:
  // a read, a write (the first fails), a read (the first is held), a write.
  std::shared_ptr<FaultyIo> holding_ = std::make_shared<FaultyIo>(
      make_memory_io(kSpace, 16),
      Fault{.kind = Fault::Kind::hold, .direction = Direction::read, .nth = 5});
  std::shared_ptr<FaultyIo> failing_ = std::make_shared<FaultyIo>(
      std::make_unique<SharedIo>(holding_),
      Fault{.direction = Direction::write, .nth = 33, .error_number = EIO});
  std::unique_ptr<NvmeStore> store_;
  const std::string expected_ = "cannot write 1048576 bytes of the probe: Input/output error";
};

TEST_F(FailingProbe, WaitsForTheOtherTransfers) {
  open(std::chrono::seconds(60));
  auto message = std::async(std::launch::async, [this] { return probe_it(); });
  failing_->wait_until_fired();
  holding_->wait_until_fired();
  EXPECT_EQ(message.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  holding_->release();
  const std::string said = message.get();
  EXPECT_NE(said.find(expected_), std::string::npos) << said;
}

TEST_F(FailingProbe, LeavesItsWindowToATransferThatIsStuck) {
  open(std::chrono::seconds(1));
  const std::string said = probe_it();
  EXPECT_NE(said.find(expected_), std::string::npos) << said;
  const FreshMemory fresh(kWindow);
  store_.reset();
  holding_->release();
  while (failing_.use_count() > 1) std::this_thread::yield();
  EXPECT_TRUE(fresh.untouched());
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
