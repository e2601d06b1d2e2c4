#include "train/run/run_disk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <exception>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "comm/factory.h"
#include "core/error.h"
#include "core/testing/test_directory.h"
#include "core/unique_fd.h"
#include "offload/nvme/nvme_store.h"
#include "offload/nvme/space_file.h"

namespace strata::train {
namespace {

/// The descriptions that each of `world` ranks gives of their shared drive.
std::vector<std::string> descriptions(const OffloadOptions& offload, int world,
                                      const std::string& plan = "") {
  TrainOptions options;
  options.offload = offload;
  options.plan = plan;
  const auto communicators = comm::make_thread_communicators(world);
  std::vector<std::string> said(communicators.size());
  std::vector<std::jthread> ranks;
  for (std::size_t r = 0; r < communicators.size(); ++r)
    ranks.emplace_back([&, r] {
      try {
        said[r] = RunDisk(options, *communicators[r]).description();
      } catch (const std::exception& error) {
        said[r] = error.what();
        communicators[r]->abort(error.what());
      }
    });
  ranks.clear();
  return said;
}

constexpr std::int64_t kBytes = 1 << 20;

TrainOptions options_with_disk(const TestDirectory& directory) {
  TrainOptions options;
  options.offload.optimizer = plan::Home::disk;
  options.offload.nvme_paths = {directory.path()};
  return options;
}

/// Changes the first byte of an open file, as another process would.
void flip_a_byte(int fd) {
  const UniqueFd file(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(file.valid());
  char byte = 0;
  ASSERT_EQ(::pread(file.get(), &byte, 1, 0), 1);
  byte = static_cast<char>(byte ^ 1);
  ASSERT_EQ(::pwrite(file.get(), &byte, 1, 0), 1);
}

TEST(RunDisk, AllRanksTakeWhatOneHasMeasured) {
  const TestDirectory directory;
  OffloadOptions options;
  options.optimizer = plan::Home::disk;
  options.nvme_paths = {directory.path()};
  options.request_bytes = std::int64_t{3} << 20;
  options.queue_depth = 5;
  const std::vector<std::string> said = descriptions(options, 2);
  EXPECT_TRUE(said[0].starts_with(directory.path() + ": ")) << said[0];
  EXPECT_TRUE(said[0].ends_with("/s written, 3 MiB x 5 at a time")) << said[0] << ", as asked";
  EXPECT_EQ(said[1], said[0]);
}

TEST(RunDisk, TransfersAsItWasAsked) {
  const TestDirectory directory;
  TrainOptions options = options_with_disk(directory);
  options.offload.request_bytes = std::int64_t{3} << 20;
  options.offload.queue_depth = 5;
  const auto communicators = comm::make_thread_communicators(1);
  RunDisk disk(options, *communicators[0]);
  disk.open(kBytes);
  EXPECT_EQ(dynamic_cast<const offload::NvmeStore&>(*disk.disk()).settings(),
            (offload::TransferSettings{std::int64_t{3} << 20, 5}));
}

TEST(RunDisk, FindsBytesThatChangedUnlessToldNotTo) {
  for (const bool looks : {true, false}) {
    const TestDirectory directory;
    TrainOptions options = options_with_disk(directory);
    options.offload.checksums = looks;
    const auto communicators = comm::make_thread_communicators(1);
    RunDisk disk(options, *communicators[0]);
    disk.open(kBytes);
    std::vector<std::byte> written(kBytes, std::byte{7}), read(kBytes);
    disk.disk()->write_bytes(0, written, "tensor w");
    flip_a_byte(dynamic_cast<const offload::NvmeStore&>(*disk.disk()).file(0));
    if (looks) {
      EXPECT_THROW(disk.disk()->read_bytes(0, read, "tensor w"), DataError);
    } else {
      EXPECT_NO_THROW(disk.disk()->read_bytes(0, read, "tensor w"));
      EXPECT_NE(read, written);
    }
  }
}

/// The folders have one file system here, but each counts as a drive of its own.
TEST(RunDisk, SaysWhenAllDrivesTogetherLackRoomForAllRanks) {
  const TestDirectory first, second;
  TrainOptions options = options_with_disk(first);
  const std::int64_t half = offload::free_bytes(first.path()) / 2;
  const auto communicators = comm::make_thread_communicators(1);
  for (int drives = 1; drives <= 2; ++drives) {
    if (drives == 2) options.offload.nvme_paths.push_back(second.path());
    const RunDisk disk(options, *communicators[0]);
    EXPECT_EQ(disk.lacking_room(half, 2 * drives - 1), "");
    const std::string said = disk.lacking_room(half, 2 * drives + 1);
    EXPECT_TRUE(said.starts_with("out of disk space: " + std::to_string(2 * drives + 1) +
                                 " rank(s) need " + std::to_string(half) + " bytes each"))
        << said;
  }
}

TEST(RunDisk, HasRoomWhereFileSystemsDoNotTell) {
  const std::string folder = "/proc";
  if (offload::free_bytes(folder) != std::numeric_limits<std::int64_t>::max())
    GTEST_SKIP() << "tells a size";
  const TestDirectory directory;
  TrainOptions options = options_with_disk(directory);
  const auto communicators = comm::make_thread_communicators(1);
  const RunDisk disk(options, *communicators[0]);
  for (const std::size_t drives : {1u, 2u, 3u}) {
    options.offload.nvme_paths.assign(drives, folder);  // the disk asks them anew
    EXPECT_EQ(disk.lacking_room(std::int64_t{1} << 50, 8), "");
  }
}

TEST(RunDisk, ServesAPlanFromAFile) {
  const TestDirectory directory;
  OffloadOptions options;
  options.nvme_paths = {directory.path()};
  EXPECT_EQ(descriptions(options, 1)[0], "");
  EXPECT_TRUE(descriptions(options, 1, "plan.json")[0].starts_with(directory.path() + ": "));
}

TEST(RunDisk, IsNothingWhereNothingLivesThere) {
  OffloadOptions options;
  options.optimizer = plan::Home::host;
  EXPECT_EQ(descriptions(options, 1), std::vector<std::string>{""});
  options.activations = plan::Home::disk;
  EXPECT_EQ(
      descriptions(options, 1),
      std::vector<std::string>{"offload to nvme needs a folder on the drive: give --nvme-path "
                               "DIR, or \"nvme_path\" beside \"device\": \"nvme\""});
}

}  // namespace
}  // namespace strata::train
