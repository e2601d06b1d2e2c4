// Checks what a SIGKILL leaves: while saving, pointing `latest` to it, and removing an older
// checkpoint. Kills at each operation on a file or folder in turn, until a save survives.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>

#include "core/testing/failing_file_system.h"
#include "core/testing/test_directory.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/testing/checkpoint_testing.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

constexpr std::array kOperations{FileOperation::create,    FileOperation::open,
                                 FileOperation::reserve,   FileOperation::write,
                                 FileOperation::sync,      FileOperation::make_directory,
                                 FileOperation::make_link, FileOperation::sync_directory,
                                 FileOperation::rename,    FileOperation::remove};

class KilledSave : public testing::TestWithParam<FileOperation> {
 protected:
  [[nodiscard]] std::string output() const { return root_ / "out"; }

  static void save(FileSystem& files, const std::string& output, std::int64_t step) {
    const CheckpointLayout layout({{"a", DType::f32, {1500}}}, {{"m.a", DType::f32, {1500}}},
                                  {.block_bytes = kTestBlockBytes});
    save_test_checkpoint(files, output, step, layout, {"run", static_cast<int>(step)});
    point_latest(files, output, step);
    remove_old_checkpoints(files, output, step, {.keep = 1}, {"run", 9});
  }

  /// Saves step 2 in another process. Returns false if the fault did not kill it.
  bool is_killed(const FileFault& fault) {
    const pid_t child = ::fork();
    if (child == 0) {
      FailingFileSystem killing(files_, fault);
      save(killing, output(), 2);
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      return false;
    }
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    return true;
  }

  TestDirectory root_;
  PosixFileSystem files_;
};

// Fault 6.
TEST_P(KilledSave, LeavesTheOldOrTheNewCheckpoint) {
  int kills = 0;
  for (const bool partial : {false, true}) {
    if (partial && GetParam() != FileOperation::write) continue;
    for (int nth = 1;; ++nth) {
      SCOPED_TRACE("number " + std::to_string(nth));
      fs::remove_all(output());
      fs::create_directory(output());
      save(files_, output(), 1);
      if (!is_killed({.operation = GetParam(), .nth = nth, .partial = partial, .kills = true}))
        break;
      ++kills;
      // Does what a run does first.
      remove_leftovers(files_, output());
      const NewestCheckpoint newest = newest_checkpoint(files_, output(), Verification::full);
      ASSERT_TRUE(newest.found);
      EXPECT_TRUE(newest.refused.empty());
      EXPECT_TRUE(
          holds_test_content(CheckpointReader(files_, newest.found->path), newest.found->step));
      EXPECT_TRUE(fs::is_regular_file(output() + "/" + kLatestName + "/manifest.json"));
      save(files_, output(), 3);
      EXPECT_EQ(newest_checkpoint(files_, output(), Verification::full).found->step, 3);
      EXPECT_EQ(std::distance(fs::directory_iterator(output()), fs::directory_iterator()), 2)
          << "a checkpoint and `latest`";
    }
  }
  EXPECT_GT(kills, 0) << "no kill struck";
}

INSTANTIATE_TEST_SUITE_P(Operations, KilledSave, testing::ValuesIn(kOperations));

}  // namespace
}  // namespace strata::train
