// Checks what a power loss leaves of saving. At every point of several saves and a removal, in
// every image of the disk that POSIX allows there, the next start finds only whole checkpoints, at
// least as new as promised, and so is the one that `latest` points to.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "core/testing/test_directory.h"
#include "train/checkpoint/testing/checkpoint_testing.h"
#include "train/checkpoint/testing/crash_testing.h"

namespace strata::train {
namespace {

class PowerLoss : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(root_ / "disk");
    record_.emplace(files_, root_ / "disk");
    save(1);
    point(1);
    save(2);
    point(2);
    remove_old_checkpoints(*record_, output(), 2, {.keep = 1}, {"run", 9});
    save(2);  // the same step once more, replacing the first
  }

  [[nodiscard]] std::string output() const { return root_ / "disk/runs/out"; }

  void save(std::int64_t step) {
    const CheckpointLayout layout({{"a", DType::f32, {1500}}}, {{"m.a", DType::f32, {1500}}},
                                  {.block_bytes = kTestBlockBytes});
    save_test_checkpoint(*record_, output(), step, layout, {"run", saves_++});
    record_->mark(kSavedMark + std::to_string(step));
  }

  void point(std::int64_t step) {
    point_latest(*record_, output(), step);
    record_->mark(kPointedMark + std::to_string(step));
  }

  TestDirectory root_;
  PosixFileSystem files_;
  std::optional<RecordingFileSystem> record_;
  CrashedOutput crashed_{root_ / "image", "runs/out", holds_test_content};
  int saves_ = 0;
};

// Fault 6.
TEST_F(PowerLoss, LeavesTheOldOrTheNewCheckpoint) {
  EXPECT_EQ(crashed_.first_fault(*record_, {.seed = 20, .random_images = 8}), "");
  EXPECT_GT(crashed_.images(), 300);
}

TEST_F(PowerLoss, NoFsyncIsSuperfluousOrUntested) {
  EXPECT_GT(record_->syncs(), 20);
  for (int sync = 0; sync < record_->syncs(); ++sync)
    EXPECT_NE(crashed_.first_fault(*record_, {.random_images = 0, .ignored_sync = sync}), "")
        << "nothing goes wrong without " << record_->sync_name(sync) << " (number " << sync << ")";
}

}  // namespace
}  // namespace strata::train
