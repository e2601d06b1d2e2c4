#include "train/run/run_disk.h"

#include <gtest/gtest.h>

#include <exception>
#include <thread>

#include "comm/factory.h"
#include "core/testing/test_directory.h"

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
