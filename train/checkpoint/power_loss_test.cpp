// What a power loss leaves of saving: at every point of several saves and a removal, in every image
// that POSIX allows there, a start finds whole checkpoints, and none older than was promised, and
// `latest` says one of them, which is none older than was promised either.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/test_directory.h"
#include "core/testing/recording_file_system.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/checkpoint_testing.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

const std::string kSaved = "saved step ";
const std::string kPointed = "latest says step ";

class PowerLoss : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(root_ / "disk");
    fs::create_directory(root_ / "image");
    record_.emplace(files_, root_ / "disk");
    save(1);
    point(1);
    save(2);
    point(2);
    remove_old_checkpoints(*record_, output(), 2, {.keep = 1}, {"run", 9});
    save(2);  // again: it replaces the first
  }

  [[nodiscard]] std::string output() const { return root_ / "disk/runs/out"; }

  void save(std::int64_t step) {
    const CheckpointLayout layout({{"a", DType::f32, {1500}}}, {{"m.a", DType::f32, {1500}}},
                                  {.block_bytes = kTestBlockBytes});
    save_test_checkpoint(*record_, output(), step, layout, {"run", saves_++});
    record_->mark(kSaved + std::to_string(step));
  }

  void point(std::int64_t step) {
    point_latest(*record_, output(), step);
    record_->mark(kPointed + std::to_string(step));
  }

  /// The step of the last mark of that kind; -1: nothing was promised.
  static std::int64_t promised(const CrashImage& image, const std::string& kind) {
    std::int64_t step = -1;
    for (const std::string& mark : image.marks)
      if (mark.starts_with(kind)) step = std::stoll(mark.substr(kind.size()));
    return step;
  }

  /// The step that `latest` says, -1 without one. Throws what std::filesystem throws when it is
  /// something else than a link.
  static std::int64_t said_by_latest(const std::string& output) {
    const fs::path link = fs::path(output) / kLatestName;
    if (!fs::exists(fs::symlink_status(link))) return -1;
    return step_of_checkpoint(fs::read_symlink(link).string()).value_or(-2);
  }

  /// What is wrong with the image; "" when nothing is.
  std::string fault_of(const CrashImage& image) {
    write_tree(root_ / "image", image.tree, last_.value());
    last_ = image.tree;
    const std::string found_in = root_ / "image/runs/out";
    std::set<std::int64_t> whole{-1};
    std::int64_t latest = -1;
    try {
      if (fs::exists(found_in) && !remove_leftovers(files_, found_in).empty()) last_.reset();
      for (const FoundCheckpoint& found : list_checkpoints(files_, found_in)) {
        const CheckpointReader reader(files_, found.path,
                                      {.threads = 1, .caching = Caching::cached});
        reader.verify();
        if (reader.manifest().step != found.step || !holds_test_content(reader, found.step))
          return found.path + " holds something else";
        whole.insert(found.step);
      }
      latest = said_by_latest(found_in);
    } catch (const std::exception& error) {
      return error.what();
    }
    if (!last_) {  // the start has changed the image
      fs::remove_all(root_ / "image");
      fs::create_directory(root_ / "image");
      last_.emplace();
    }
    if (!whole.contains(latest)) return "latest says " + std::to_string(latest);
    for (const auto& [kind, step] :
         {std::pair{kSaved, *whole.rbegin()}, std::pair{kPointed, latest}})
      if (step < promised(image, kind))
        return kind + std::to_string(promised(image, kind)) + ", found " + std::to_string(step);
    return "";
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
