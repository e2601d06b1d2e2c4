// Power losses and SIGKILL while several ranks write a checkpoint: what is left on the disk. Also
// checks that the checkpoint's fsyncs reach the system.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>

#include "core/testing/failing_file_system.h"
#include "core/testing/fsync_counter.h"
#include "core/testing/test_directory.h"
#include "tests/training/saved_runs.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/testing/crash_testing.h"

namespace strata::tests {
namespace {

namespace fs = std::filesystem;

/// A run on two ranks that both write: two blocks of optimizer state and one of the model.
TrainingCase two_writers() {
  TrainingCase training = case_of(2, 2, plan::Home::device, recipe("fp32"));
  training.model.intermediate = 2200;
  return training;
}

/// Runs one step before each save; rank 0 calls `after_save` after it.
void save_steps(const TrainingCase& training, FileSystem& files, const std::string& output,
                std::int64_t first, std::int64_t last,
                const std::function<void(std::int64_t)>& after_save = {}) {
  train::prepare_output_folder(files, output);
  on_new_weights(training, [&](train::Engine& engine) {
    for (std::int64_t at = 1; at <= last; ++at) {
      step(engine, at);
      if (at < first) continue;
      const int attempt = static_cast<int>(at);
      const train::SaveResult result = train::save_checkpoint(
          engine, files,
          {.output = output,
           .step = at,
           .attempt = {.run_id = "test", .attempt = attempt},
           .whole_files = {{"config.json", "{\"step\": " + std::to_string(at) + "}\n"}}});
      EXPECT_GT(result.my_bytes, 0);
      if (engine.communicator().rank() == 0 && after_save) after_save(at);
    }
  });
}

std::string manifest_text(const train::CheckpointReader& reader) {
  return train::to_text(reader.manifest());
}

class RanksPowerLoss : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(root_ / "disk");
    record_.emplace(files_, root_ / "disk");
    save_steps(two_writers(), *record_, root_ / "disk/out", 1, 2,
               [&](std::int64_t at) { record_->mark(train::kSavedMark + std::to_string(at)); });
    for (const train::FoundCheckpoint& found : train::list_checkpoints(files_, root_ / "disk/out"))
      manifests_[found.step] = manifest_text(train::CheckpointReader(files_, found.path));
    ASSERT_EQ(manifests_.size(), 2u);
    ASSERT_NE(manifests_[1], manifests_[2]);
  }

  TestDirectory root_;
  PosixFileSystem files_;
  std::optional<RecordingFileSystem> record_;
  std::map<std::int64_t, std::string> manifests_;
  train::CrashedOutput crashed_{root_ / "image", "out",
                                [&](const train::CheckpointReader& reader, std::int64_t at) {
                                  return manifest_text(reader) == manifests_[at];
                                }};
};

// Fault 6.
TEST_F(RanksPowerLoss, LeavesTheOldOrTheNewCheckpoint) {
  EXPECT_EQ(crashed_.first_fault(*record_, {.random_images = 2}), "");
  EXPECT_GT(crashed_.images(), 50);
}

TEST_F(RanksPowerLoss, NoFsyncIsSuperfluousOrUntested) {
  EXPECT_GT(record_->syncs(), 12);
  for (int sync = 0; sync < record_->syncs(); ++sync)
    EXPECT_NE(crashed_.first_fault(*record_, {.random_images = 0, .ignored_sync = sync}), "")
        << "nothing goes wrong without " << record_->sync_name(sync) << " (number " << sync << ")";
}

TEST(RanksSave, SyncsEveryFileAndFolder) {
  const TestDirectory directory;
  PosixFileSystem files;
  forget_fsyncs();
  save_steps(two_writers(), files, directory / "out", 1, 1);
  EXPECT_GE(fsyncs_of(directory.path()), 1) << "holds a new folder";
  EXPECT_GE(fsyncs_of(directory / "out"), 1);
  const std::string checkpoint = directory / "out/" + train::checkpoint_name(1);
  EXPECT_GE(fsyncs_of(checkpoint), 1);
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    const bool by_all = entry.path().filename() == "optimizer.safetensors";
    EXPECT_GE(fsyncs_of(entry.path()), by_all ? 2 : 1) << entry.path();
    ++seen;
  }
  EXPECT_EQ(seen, 4) << "model, optimizer, config.json, manifest.json";
}

class RanksKilledSave : public testing::TestWithParam<FileOperation> {};

// Fault 6.
TEST_P(RanksKilledSave, LeavesTheOldOrTheNewCheckpoint) {
  const TestDirectory directory;
  const std::string output = directory / "out";
  PosixFileSystem files;
  int kills = 0;
  for (int nth = 1;; ++nth) {
    SCOPED_TRACE("number " + std::to_string(nth));
    fs::remove_all(output);
    save_steps(two_writers(), files, output, 1, 1);
    const pid_t child = ::fork();
    if (child == 0) {
      FailingFileSystem killing(files, {.operation = GetParam(), .nth = nth, .kills = true});
      save_steps(two_writers(), killing, output, 2, 2);
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!killed) {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    train::remove_leftovers(files, output);
    const train::NewestCheckpoint newest =
        newest_checkpoint(files, output, train::Verification::full);
    ASSERT_TRUE(newest.found);
    EXPECT_TRUE(newest.refused.empty());
    if (!killed) {
      EXPECT_EQ(newest.found->step, 2);
      break;
    }
    ++kills;
  }
  EXPECT_GT(kills, 0) << "no kill struck";
}

INSTANTIATE_TEST_SUITE_P(Operations, RanksKilledSave,
                         testing::Values(FileOperation::create, FileOperation::open,
                                         FileOperation::write, FileOperation::sync,
                                         FileOperation::make_directory,
                                         FileOperation::sync_directory, FileOperation::rename));

}  // namespace
}  // namespace strata::tests
