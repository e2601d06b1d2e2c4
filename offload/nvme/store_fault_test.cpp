// Tests that make every request of a transfer fail once, in every way.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>

#include "core/error.h"
#include "core/testing/test_directory.h"
#include "core/unique_fd.h"
#include "offload/nvme/disk_alignment.h"
#include "offload/nvme/nvme_store.h"
#include "offload/nvme/probe.h"
#include "offload/testing/faulty_io.h"
#include "offload/testing/fresh_memory.h"
#include "offload/testing/test_devices.h"
#include "runtime/program/arena_alignment.h"

namespace strata::offload {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kSector = runtime::kDiskAlignment;
constexpr std::int64_t kBytes = 6 * kMiB;

class StoreFaultsOn : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
  /// Opens a store with one device that has `fault`; requests are of 1 MiB.
  void open(const Fault& fault, StoreOptions options = {}) {
    store_.reset();
    options.settings.request_bytes = kMiB;
    store_ = make_store(GetParam(), directory_.path(), kBytes, options,
                        [&](std::unique_ptr<BlockIo> inner) {
                          faulty_ = std::make_shared<FaultyIo>(std::move(inner), fault);
                          return std::make_unique<SharedIo>(faulty_);
                        });
    const auto values = pattern(kBytes - 2 * kSector, 1);
    std::memcpy(out_.bytes().data(), values.data(), values.size());
  }
  void write() { store_->wait(store_->start_write(kSector, out_.bytes(), "tensor w")); }
  void read() { store_->wait(store_->start_read(kSector, in_.bytes(), "tensor w")); }
  [[nodiscard]] bool same() const {
    return std::memcmp(in_.bytes().data(), out_.bytes().data(), out_.bytes().size()) == 0;
  }
  /// Destroys the store, then lets the held request end.
  void end_without_the_store() {
    store_.reset();
    faulty_->release();
    while (faulty_.use_count() > 1) std::this_thread::yield();
  }
  /// Does `work()` with a fault at the nth request for n = 1, 2, ... until no request is struck.
  template <typename Work>
  void for_every_request(Fault fault, const Work& work) {
    for (fault.nth = 1;; ++fault.nth) {
      SCOPED_TRACE("request " + std::to_string(fault.nth));
      open(fault);
      work();
      if (HasFatalFailure() || faulty_->fired() == 0) break;
      EXPECT_EQ(faulty_->fired(), fault.times);
    }
    EXPECT_EQ(fault.nth, 7) << "the transfer has six requests";
  }

  TestDirectory directory_;
  AlignedMemory out_{kBytes - 2 * kSector};
  AlignedMemory in_{kBytes - 2 * kSector};
  std::shared_ptr<FaultyIo> faulty_;
  std::unique_ptr<NvmeStore> store_;
};

INSTANTIATE_TEST_SUITE_P(OneDevice, StoreFaultsOn,
                         testing::Values(DeviceKind{"memory", DeviceKind::Io::memory, 1},
                                         DeviceKind{"threads", DeviceKind::Io::threads, 1},
                                         DeviceKind{"io_uring", DeviceKind::Io::uring, 1}),
                         [](const auto& instance) { return instance.param.name; });

// Fault 17.
TEST_P(StoreFaultsOn, AFailedReadIsRetriedOnce) {
  for_every_request({.direction = Direction::read, .error_number = EIO}, [&] {
    write();
    read();
    EXPECT_TRUE(same());
    EXPECT_EQ(faulty_->requests(Direction::read), 6 + faulty_->fired());
  });
}

// Fault 17.
TEST_P(StoreFaultsOn, AReadThatFailsTwiceIsAnErrorThatNamesIt) {
  for_every_request({.direction = Direction::read, .times = 2, .error_number = EIO}, [&] {
    write();
    const std::string message = message_of<IoError>([&] { read(); });
    if (faulty_->fired() == 0) {
      EXPECT_EQ(message, "no error");
      return;
    }
    EXPECT_NE(message.find(directory_.path() + " at byte "), std::string::npos) << message;
    EXPECT_NE(message.find("cannot read 10"), std::string::npos) << message;
    EXPECT_NE(message.find("bytes of tensor w: Input/output error"), std::string::npos) << message;
    // The rest of the transfer is over, and the store goes on working.
    read();
    EXPECT_TRUE(same());
  });
}

// Fault 17.
TEST_P(StoreFaultsOn, AFailedWriteIsAnError) {
  for_every_request({.direction = Direction::write, .error_number = EIO}, [&] {
    const std::string message = message_of<IoError>([&] { write(); });
    if (faulty_->fired() == 0) {
      EXPECT_EQ(message, "no error");
      return;
    }
    EXPECT_NE(message.find("bytes of tensor w: Input/output error"), std::string::npos) << message;
    EXPECT_EQ(store_->counters().written_bytes, 0);
    // Bytes that did not reach the disk are not taken for those that were written.
    EXPECT_NE(message_of<DataError>([&] { read(); }), "no error");
  });
}

// Fault 16.
TEST_P(StoreFaultsOn, InterruptedRequestsGoOutAgain) {
  for (const int number : {EINTR, EAGAIN})
    for (const Direction direction : {Direction::read, Direction::write})
      for_every_request({.direction = direction, .times = 3, .error_number = number}, [&] {
        write();
        read();
        EXPECT_TRUE(same());
      });
}

// Fault 16.
TEST_P(StoreFaultsOn, TheRestOfAShortTransferGoesOutAgain) {
  // Includes requests that transfer nothing, and ends in the middle of a sector.
  for (const std::int64_t missing : {kSector, 3 * kSector + 100, kMiB})
    for (const Direction direction : {Direction::read, Direction::write}) {
      for_every_request({.kind = Fault::Kind::short_by, .direction = direction, .bytes = missing},
                        [&] {
                          write();
                          read();
                          EXPECT_TRUE(same());
                        });
    }
}

// Fault 16.
TEST_P(StoreFaultsOn, ADeviceThatNeverTransfersTheRestIsAnError) {
  open({.kind = Fault::Kind::short_by,
        .direction = Direction::write,
        .nth = 3,
        .times = 1000,
        .bytes = kMiB});
  const std::string message = message_of<IoError>([&] { write(); });
  EXPECT_NE(message.find("cannot write 1048576 bytes of tensor w: the device transfers fewer"),
            std::string::npos)
      << message;
  EXPECT_EQ(faulty_->fired(), 100);
}

// Fault 19.
TEST_P(StoreFaultsOn, AFlippedBitIsFoundAndReadAgain) {
  for_every_request({.kind = Fault::Kind::flip, .direction = Direction::read}, [&] {
    write();
    read();
    EXPECT_TRUE(same());
    EXPECT_EQ(faulty_->requests(Direction::read), 6 + faulty_->fired());
  });
}

// Fault 19.
TEST_P(StoreFaultsOn, ABitThatStaysFlippedIsAnErrorThatNamesIt) {
  for_every_request({.kind = Fault::Kind::flip, .direction = Direction::read, .times = 2}, [&] {
    write();
    const std::string message = message_of<DataError>([&] { read(); });
    if (faulty_->fired() == 0) {
      EXPECT_EQ(message, "no error");
      return;
    }
    EXPECT_NE(message.find("bytes of tensor w are not what was written"), std::string::npos)
        << message;
  });
}

TEST_P(StoreFaultsOn, WithoutChecksumsAFlippedBitIsNotFound) {
  open({.kind = Fault::Kind::flip, .direction = Direction::read}, {.checksums = false});
  write();
  read();
  EXPECT_EQ(faulty_->fired(), 1);
  EXPECT_FALSE(same());
}

// Fault 19.
TEST_P(StoreFaultsOn, ABitFlippedInTheFileIsFound) {
  open({});
  if (store_->file(0) < 0) GTEST_SKIP() << "memory has no file";
  write();
  // Uses another descriptor, without O_DIRECT, as another process would.
  const UniqueFd file(
      ::open(("/proc/self/fd/" + std::to_string(store_->file(0))).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(file.valid());
  char byte = 0;
  const std::int64_t at = 2 * kMiB + 5;
  ASSERT_EQ(::pread(file.get(), &byte, 1, at), 1);
  byte = static_cast<char>(byte ^ 1);
  ASSERT_EQ(::pwrite(file.get(), &byte, 1, at), 1);
  ASSERT_EQ(::fsync(file.get()), 0);
  EXPECT_EQ(message_of<DataError>([&] { read(); }),
            directory_.path() +
                " at byte 2097152: 1048576 bytes of tensor w are not what was "
                "written, also when read again: the disk, its connection or this "
                "machine's memory is faulty");
}

// Fault 8.
TEST_P(StoreFaultsOn, AStuckRequestIsReportedAndBlocksNoOther) {
  open({.kind = Fault::Kind::hold, .direction = Direction::write, .nth = 2},
       {.stuck_after = std::chrono::seconds(1)});
  const auto stuck = store_->start_write(0, out_.bytes().first(3 * kMiB), "the slow tensor");
  const auto other = store_->start_write(3 * kMiB, out_.bytes().subspan(3 * kMiB), "another");
  store_->wait(other);
  const std::string message = message_of<IoError>([&] { store_->wait(stuck); });
  EXPECT_EQ(message, directory_.path() +
                         " at byte 1048576: the request to write 1048576 bytes of the slow tensor "
                         "has been under way for 1 s");
  faulty_->release();
  store_->wait(stuck);
  store_->wait(store_->start_read(0, in_.bytes(), "all"));
  EXPECT_TRUE(same());
}

TEST_P(StoreFaultsOn, ATransferTooManyWaitsForRoom) {
  open({.kind = Fault::Kind::hold, .direction = Direction::write, .nth = 1}, {.most_transfers = 1});
  const auto first = store_->start_write(0, out_.bytes().first(kMiB), "first");
  faulty_->wait_until_fired();
  auto second = std::async(std::launch::async, [this] {
    return store_->start_write(kMiB, out_.bytes().first(kMiB), "second");
  });
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(30)), std::future_status::timeout);
  faulty_->release();
  store_->wait(second.get());
  store_->wait(first);
}

TEST_P(StoreFaultsOn, IsNotDestroyedBeforeWhatIsUnderWay) {
  open({.kind = Fault::Kind::hold, .direction = Direction::write, .nth = 2});
  store_->start_write(0, out_.bytes(), "under way");
  faulty_->wait_until_fired();
  auto gone = std::async(std::launch::async, [this] { store_.reset(); });
  EXPECT_EQ(gone.wait_for(std::chrono::milliseconds(30)), std::future_status::timeout);
  faulty_->release();
  gone.get();
}

/// The store is destroyed before a waiting thread's error is reported, so it must not hang.
TEST_P(StoreFaultsOn, IsDestroyedBeforeARequestThatIsStuck) {
  open({.kind = Fault::Kind::hold, .direction = Direction::write, .nth = 2},
       {.stuck_after = std::chrono::milliseconds(200)});
  const auto stuck = store_->start_write(0, out_.bytes(), "the slow tensor");
  EXPECT_THROW(store_->wait(stuck), IoError);
  auto gone = std::async(std::launch::async, [this] { store_.reset(); });
  EXPECT_EQ(gone.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  // The device is destroyed once the request ends; nobody uses what the store held.
  faulty_->release();
  gone.get();
  while (faulty_.use_count() > 1) std::this_thread::yield();
}

TEST_P(StoreFaultsOn, TheWindowOfAStuckReadOfBytesOutlivesTheStore) {
  open({.kind = Fault::Kind::hold, .direction = Direction::read, .nth = 1},
       {.stuck_after = std::chrono::seconds(1)});
  write();
  std::vector<std::byte> in(kBytes - 2 * kSector - 1);
  EXPECT_THROW(store_->read_bytes(kSector + 1, in, "weights"), IoError);
  const FreshMemory fresh(4 * kMiB);
  end_without_the_store();
  EXPECT_TRUE(fresh.untouched());
}

TEST_P(StoreFaultsOn, AStuckWriteOfBytesWritesThemInTheEnd) {
  open({.kind = Fault::Kind::hold, .direction = Direction::write, .nth = 1},
       {.stuck_after = std::chrono::seconds(1)});
  constexpr std::int64_t kRange = 3 * kMiB;
  const auto values = pattern(kRange, 2);
  EXPECT_THROW(store_->write_bytes(5, values, "weights"), IoError);
  const FreshMemory fresh(kRange + 2 * kSector);
  faulty_->release();
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (store_->counters().written_bytes == 0 && std::chrono::steady_clock::now() < limit)
    std::this_thread::yield();
  std::vector<std::byte> in(kRange);
  store_->read_bytes(5, in, "weights");
  EXPECT_EQ(in, values);
}

TEST_P(StoreFaultsOn, TheCopyOfAStuckSplitOutlivesTheStore) {
  open({.kind = Fault::Kind::hold, .direction = Direction::read, .nth = 1},
       {.stuck_after = std::chrono::seconds(1)});
  write();
  const auto part = in_.bytes().first(kSector);
  EXPECT_THROW(store_->start_read(kMiB + kSector, part, "a part"), IoError);
  const FreshMemory fresh(kMiB);
  end_without_the_store();
  EXPECT_TRUE(fresh.untouched());
}

/// Memory that the probe registered must not be freed: a device would take other memory at the same
/// addresses for it.
TEST_P(StoreFaultsOn, GoesOnAfterAProbeThatFailed) {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 17);  // the same addresses then have other pages
  open({.direction = Direction::write, .nth = 3, .error_number = EIO});
  EXPECT_THROW(probe(*store_), IoError);
  constexpr std::int64_t kPart = kBytes / 2;  // size of the probe's window
  std::vector<AlignedMemory> parts;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const std::span<std::byte> bytes = parts.emplace_back(kPart).bytes();
    const auto values = pattern(kPart, seed);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    store_->wait(store_->start_write(0, bytes, "part"));
    std::memset(bytes.data(), 0, bytes.size());
    store_->wait(store_->start_read(0, bytes, "part"));
    EXPECT_EQ(std::memcmp(bytes.data(), values.data(), bytes.size()), 0);
  }
}

}  // namespace
}  // namespace strata::offload
