// What a power loss leaves of saving: at every point of several saves and a removal, in every image
// that POSIX allows there, a start finds whole checkpoints, and none older than was promised.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "core/test_directory.h"
#include "core/testing/recording_file_system.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/checkpoint_testing.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

class PowerLoss : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(root_ / "disk");
    fs::create_directory(root_ / "image");
    record_.emplace(files_, root_ / "disk");
    save(1);
    save(2);
    remove_old_checkpoints(*record_, output(), {.keep = 1}, {"run", 9});
    save(2);  // again: it replaces the first
  }

  [[nodiscard]] std::string output() const { return root_ / "disk/runs/out"; }

  void save(std::int64_t step) {
    const CheckpointLayout layout({{"a", DType::f32, {1500}}}, {{"m.a", DType::f32, {1500}}},
                                  {.block_bytes = kTestBlockBytes});
    save_test_checkpoint(*record_, output(), step, layout, {"run", saves_++});
    record_->mark(std::to_string(step));
  }

  /// What is wrong with the image; "" when nothing is.
  std::string fault_of(const CrashImage& image) {
    write_tree(root_ / "image", image.tree, last_.value());
    last_ = image.tree;
    const std::string found_in = root_ / "image/runs/out";
    std::int64_t newest = -1;
    try {
      if (fs::exists(found_in) && !remove_leftovers(files_, found_in).empty()) last_.reset();
      for (const FoundCheckpoint& found : list_checkpoints(files_, found_in)) {
        const CheckpointReader reader(files_, found.path,
                                      {.threads = 1, .caching = Caching::cached});
        reader.verify();
        if (reader.manifest().step != found.step || !holds_test_content(reader, found.step))
          return found.path + " holds something else";
        newest = found.step;
      }
    } catch (const Error& error) {
      return error.what();
    }
    if (!last_) {  // the start has changed the image
      fs::remove_all(root_ / "image");
      fs::create_directory(root_ / "image");
      last_.emplace();
    }
    const std::int64_t promised = image.marks.empty() ? -1 : std::stoll(image.marks.back());
    if (newest >= promised) return "";
    return "step " + std::to_string(promised) + " was committed, found " + std::to_string(newest);
  }

  /// The first wrong image; "" when there is none.
  std::string first_fault(const CrashOptions& options) {
    std::string fault;
    fs::remove_all(root_ / "image");
    fs::create_directory(root_ / "image");
    last_.emplace();
    images_ = record_->crash_images(options, [&](const CrashImage& image) {
      fault = fault_of(image);
      if (!fault.empty()) fault = image.description + ": " + fault;
      return fault.empty();
    });
    return fault;
  }

  TestDirectory root_;
  PosixFileSystem files_;
  std::optional<RecordingFileSystem> record_;
  std::optional<FileTree> last_ = FileTree{};
  int saves_ = 0;
  int images_ = 0;
};

TEST_F(PowerLoss, LeavesTheOldOrTheNewCheckpoint) {
  EXPECT_EQ(first_fault({.seed = 20, .random_images = 8}), "");
  EXPECT_GT(images_, 300);
}

TEST_F(PowerLoss, NoFsyncIsSuperfluousOrUntested) {
  EXPECT_GT(record_->syncs(), 20);
  for (int sync = 0; sync < record_->syncs(); ++sync)
    EXPECT_NE(first_fault({.random_images = 0, .ignored_sync = sync}), "")
        << "nothing goes wrong without " << record_->sync_name(sync) << " (number " << sync << ")";
}

}  // namespace
}  // namespace strata::train
