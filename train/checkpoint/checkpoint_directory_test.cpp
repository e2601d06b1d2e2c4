#include "train/checkpoint/checkpoint_directory.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "core/testing/failing_file_system.h"
#include "core/testing/test_directory.h"
#include "train/checkpoint/checkpoint_run.h"
#include "train/checkpoint/output_lock.h"
#include "train/checkpoint/testing/checkpoint_testing.h"
#include "train/checkpoint/testing/no_locks.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;
constexpr std::chrono::milliseconds kAtOnce{0};

class CheckpointDirectoryTest : public testing::Test {
 protected:
  [[nodiscard]] std::string output() const { return root_ / "out"; }
  void save(std::int64_t step, FileSystem* files = nullptr) {
    save_test_checkpoint(files != nullptr ? *files : files_, output(), step);
  }
  void save_not_finite(std::int64_t step) {
    save_test_checkpoint(files_, output(), step, test_layout(), {"run", 0},
                         {{kNotFiniteFact, "values of model.a"}});
  }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(output()))
      found.insert(entry.path().filename());
    return found;
  }
  /// The step of the newest checkpoint that passes every check; -1: none.
  std::int64_t newest() {
    const auto found = newest_checkpoint(files_, output(), Verification::full);
    return found.found ? found.found->step : -1;
  }

  TestDirectory root_;
  PosixFileSystem files_;
};

TEST(CheckpointNames, AreReadAsTheyAreWritten) {
  EXPECT_EQ(checkpoint_name(1000), "step-00001000");
  EXPECT_EQ(checkpoint_name(1234567890), "step-1234567890");
  for (const std::int64_t step : {0LL, 7LL, 99999999LL, 100000000LL, 9223372036854775807LL})
    EXPECT_EQ(step_of_checkpoint(checkpoint_name(step)), step);
  for (const std::string name :
       {"step-1", "step-000000007", "step-", "step--0000007", "step-0000000x", "xstep-00000007",
        "step-00000007.tmp-r-0", "step-99999999999999999999"})
    EXPECT_FALSE(step_of_checkpoint(name)) << name;
  const std::string staging = folder_name(7, FolderState::staging, {"a1", 3});
  EXPECT_EQ(staging, "step-00000007.tmp-a1-3");
  ASSERT_TRUE(parse_folder_name(staging));
  EXPECT_EQ(parse_folder_name(staging)->step, 7);
  EXPECT_EQ(parse_folder_name("step-00000007.replaced-a-0")->state, FolderState::replaced);
  for (const std::string name : {"step-00000007", "step-00000007.mine", "step-00000007.tmp-",
                                 "step-00000007.tmp-a", "step-00000007.tmp-a-", "step-7.tmp-a-1",
                                 "step-00000007.tmp-a/b-1", "step-00000007.tmp--1"})
    EXPECT_FALSE(parse_folder_name(name)) << name;
}

TEST_F(CheckpointDirectoryTest, TheNewestThatVerifiesIsFound) {
  EXPECT_EQ(newest(), -1);
  for (const int step : {1, 2, 3}) save(step);
  EXPECT_EQ(newest(), 3);
  EXPECT_EQ(list_checkpoints(files_, output()).size(), 3U);
  const std::string weights = output() + "/step-00000003/model.safetensors";
  File file = File::open_for_writing(weights);
  const char wrong = 'x';
  file.write(5000, std::as_bytes(std::span(&wrong, 1)));
  const auto by_size = newest_checkpoint(files_, output(), Verification::sizes);
  EXPECT_EQ(by_size.found->step, 3);
  EXPECT_TRUE(by_size.refused.empty());
  const auto found = newest_checkpoint(files_, output(), Verification::full);
  EXPECT_EQ(found.found->step, 2);
  ASSERT_EQ(found.refused.size(), 1U);
  EXPECT_NE(found.refused[0].reason.find(weights), std::string::npos);
  EXPECT_EQ(newest_checkpoint(files_, output(), Verification::full, 2).found->step, 1);
  EXPECT_FALSE(newest_checkpoint(files_, output(), Verification::full, 1).found);
  fs::rename(output() + "/step-00000002", output() + "/step-00000009");
  const auto renamed = newest_checkpoint(files_, output(), Verification::sizes);
  EXPECT_EQ(renamed.refused.at(0).path, output() + "/step-00000009");
  EXPECT_NE(renamed.refused.at(0).reason.find("is of step 2"), std::string::npos);
}

TEST_F(CheckpointDirectoryTest, OneOfTheSameStepIsReplaced) {
  save(1);
  const std::string state = output() + "/step-00000001/trainer_state.json";
  write_file_atomically(state, "damaged");
  EXPECT_EQ(newest(), -1);
  save(1);
  EXPECT_EQ(newest(), 1);
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000001"}));
}

// Fault 6.
TEST_F(CheckpointDirectoryTest, LeftoversGoAndNothingElse) {
  save(1);
  for (const std::string name : {"step-00000002.tmp-old-0", "step-00000002.removed-old-1",
                                 "step-00000001.replaced-old-1", "step-00000002.mine", "notes"}) {
    fs::create_directories(output() + "/" + name + "/deep");
    write_file_atomically(output() + "/" + name + "/deep/file", "x");
  }
  write_file_atomically(output() + "/step-00000003.tmp-old-0", "a file");
  EXPECT_EQ(remove_leftovers(files_, output()).size(), 3U);
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000001", "step-00000002.mine", "notes",
                                            "step-00000003.tmp-old-0"}));
  // Moved aside for a checkpoint that was never committed.
  fs::rename(output() + "/step-00000001", output() + "/step-00000001.replaced-r-0");
  EXPECT_EQ(newest(), -1);
  remove_leftovers(files_, output());
  EXPECT_EQ(newest(), 1);
}

TEST_F(CheckpointDirectoryTest, RetentionKeepsTheNewestAndEveryNth) {
  using Steps = std::vector<std::int64_t>;
  const Steps steps{500, 100, 200, 300, 400};
  EXPECT_EQ(steps_to_remove(steps, {}), Steps());
  EXPECT_EQ(steps_to_remove(steps, {.keep = 2}), (Steps{100, 200, 300}));
  EXPECT_EQ(steps_to_remove(steps, {.keep = 1, .keep_every = 200}), (Steps{100, 300}));
  EXPECT_EQ(steps_to_remove(steps, {.keep = 9}), Steps());
  EXPECT_EQ(steps_to_remove(Steps(), {.keep = 1}), Steps());
  for (const int step : {1, 2, 3, 4}) save(step);
  const auto removed =
      remove_old_checkpoints(files_, output(), 4, {.keep = 1, .keep_every = 2}, {"run", 0});
  EXPECT_EQ(removed,
            (std::vector<std::string>{output() + "/step-00000001", output() + "/step-00000003"}));
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000002", "step-00000004"}));
}

TEST_F(CheckpointDirectoryTest, TheNewestWithFiniteValuesIsFoundAndNeverRemoved) {
  for (const int step : {1, 2}) save(step);
  for (const int step : {3, 4, 5}) save_not_finite(step);
  const auto found = newest_checkpoint(files_, output(), Verification::sizes);
  EXPECT_EQ(found.found->step, 2);
  EXPECT_EQ(found.refused.size(), 3U);
  EXPECT_EQ(
      found.refused.at(0).reason,
      output() + "/step-00000005: is not finite: values of model.a; name it to go on from it");
  remove_old_checkpoints(files_, output(), 5, {.keep = 2}, {"run", 0});
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000002", "step-00000004", "step-00000005"}));
  // A damaged checkpoint does not count as the one to keep.
  save(6);
  save_not_finite(7);
  fs::resize_file(output() + "/step-00000006/model.safetensors", 5000);
  remove_old_checkpoints(files_, output(), 7, {.keep = 2}, {"run", 0});
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000002", "step-00000006", "step-00000007"}));
  save(8);
  remove_old_checkpoints(files_, output(), 8, {.keep = 1}, {"run", 0});
  EXPECT_EQ(names(), std::set<std::string>{"step-00000008"});
}

TEST_F(CheckpointDirectoryTest, NothingIsRemovedWhileTheNewestIsNotWhole) {
  for (const int step : {1, 2}) save(step);
  fs::resize_file(output() + "/step-00000002/model.safetensors", 5000);
  EXPECT_THROW(remove_old_checkpoints(files_, output(), 2, {.keep = 1}, {"run", 0}), DataError);
  EXPECT_EQ(newest(), 1);
}

// A run went on from step 2, since step 4 was damaged in a way that its sizes do not show.
TEST_F(CheckpointDirectoryTest, LaterStepsAreNoReasonToRemoveAndAreNotRemoved) {
  for (const int step : {1, 2, 3, 4}) save(step);
  EXPECT_EQ(remove_old_checkpoints(files_, output(), 3, {.keep = 2}, {"run", 0}),
            (std::vector<std::string>{output() + "/step-00000001"}));
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000002", "step-00000003", "step-00000004"}));
}

TEST_F(CheckpointDirectoryTest, TheNewestOfOneRunIsFound) {
  const auto save_of = [&](std::int64_t step, const std::string& run_id) {
    save_test_checkpoint(files_, output(), step, test_layout(), {"run", 0}, {{kRunIdFact, run_id}});
  };
  save_of(1, "mine");
  save_of(2, "mine");
  save_of(3, "another");
  save(4);  // names no run
  const auto newest_of = [&](const std::string& run_id, std::int64_t before = INT64_MAX) {
    const auto newest = newest_checkpoint(files_, output(), Verification::sizes, before, run_id);
    EXPECT_TRUE(newest.refused.empty());
    return newest.found ? newest.found->step : -1;
  };
  EXPECT_EQ(newest_of("mine"), 2);
  EXPECT_EQ(newest_of("mine", 2), 1);
  EXPECT_EQ(newest_of("another"), 3);
  EXPECT_EQ(newest_of("a third"), -1);
  // Of what cannot be read nobody knows whose it is; what is not whole is passed over with a word.
  fs::remove(output() + "/step-00000003/manifest.json");
  EXPECT_EQ(newest_of("another"), -1);
  fs::remove(output() + "/step-00000002/model.safetensors");
  const auto newest = newest_checkpoint(files_, output(), Verification::sizes, INT64_MAX, "mine");
  EXPECT_EQ(newest.found->step, 1);
  EXPECT_EQ(newest.refused.size(), 1U);
}

// Fault 31.
/// A process of an earlier attempt that should have ended, and goes on.
TEST_F(CheckpointDirectoryTest, AnEarlierAttemptDoesNotReplaceALaterOnesCheckpoint) {
  const auto save_of = [&](const std::string& run_id, int attempt) {
    save_test_checkpoint(files_, output(), 5, test_layout(), {run_id, 0},
                         {{kRunIdFact, run_id}, {kAttemptFact, std::to_string(attempt)}});
  };
  const auto holds = [&] {
    const auto run = run_of_checkpoint(files_, output() + "/step-00000005");
    return run ? fmt::format("{} {}", run->run_id, run->attempt) : "none";
  };
  save_of("run", 1);
  save_of("run", 2);
  EXPECT_EQ(holds(), "run 2");
  EXPECT_NE(message_of<PeerError>([&] { save_of("run", 1); }).find("attempt 2 of this run"),
            std::string::npos);
  EXPECT_EQ(holds(), "run 2");
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000005"}));
  save_of("run", 2);
  save_of("another", 0);
  EXPECT_EQ(holds(), "another 0");
}

TEST_F(CheckpointDirectoryTest, WhoForbidsTheRenamesKeepsWhatWasThere) {
  save(5);
  const Manifest manifest = CheckpointReader(files_, output() + "/step-00000005").manifest();
  const SaveAttempt attempt{"run", 7};
  create_staging_folder(files_, output(), 5, attempt);
  Manifest empty = manifest;
  empty.whole_files.clear();
  bool asked = false;
  EXPECT_THROW(commit_checkpoint(files_, output(), empty, {}, attempt,
                                 [&] {
                                   asked = is_name_taken(output() + "/step-00000005.tmp-run-7/" +
                                                         kManifestName);
                                   throw PeerError("no");
                                 }),
               PeerError);
  EXPECT_TRUE(asked) << "all is written before";
  EXPECT_EQ(newest(), 5);
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000005", "step-00000005.tmp-run-7"}));
}

// Fault 33.
TEST_F(CheckpointDirectoryTest, ASecondRunIsRefusedByTheOwnersName) {
  {
    const OutputLock lock(root_.path(), {"node7", 4711, "abc"});
    EXPECT_EQ(message_of<HostError>([&] {
                const OutputLock second(root_.path(), {"node8", 1, "def"}, kAtOnce);
              }),
              root_.path() +
                  ": in use by run abc on host node7, process 4711; wait for it to end, "
                  "or choose another output folder");
  }
  EXPECT_NO_THROW(OutputLock(root_.path(), {"node8", 1, "def"}, kAtOnce));
  EXPECT_THROW(OutputLock(root_ / "none", {"node8", 1, "def"}, kAtOnce), IoError);
}

TEST_F(CheckpointDirectoryTest, ARankThatSurvivesItsRunKeepsOthersOut) {
  auto owner = std::make_unique<OutputLock>(root_.path(), LockOwner{"node7", 4711, "abc"}, kAtOnce);
  auto rank = std::make_unique<OutputLock>(OutputLock::join(root_.path()));
  auto other_rank = std::make_unique<OutputLock>(OutputLock::join(root_.path()));
  const auto message = [&] {
    return message_of<HostError>([&] {
      const OutputLock next(root_.path(), {"node8", 1, "def"}, kAtOnce);
    });
  };
  EXPECT_NE(message().find("in use by run abc"), std::string::npos);
  owner.reset();
  const std::string survivors = root_.path() +
                                ": run abc on host node7, process 4711, has ended, but other "
                                "ranks still live and may write there";
  EXPECT_NE(message().find(survivors), std::string::npos) << message();
  rank.reset();
  EXPECT_NE(message().find(survivors), std::string::npos);
  other_rank.reset();
  EXPECT_NO_THROW(OutputLock(root_.path(), {"node8", 1, "def"}, kAtOnce));
}

TEST_F(CheckpointDirectoryTest, ALockKnowsWhetherOthersMeetIt) {
  namespace fs = std::filesystem;
  const OutputLock owner(root_.path(), {"node7", 4711, "abc"});
  const OutputLock rank = OutputLock::join(root_.path());
  EXPECT_TRUE(owner.is_in_place());
  EXPECT_TRUE(rank.is_in_place());
  fs::remove(root_ / ".strata-lock");
  EXPECT_FALSE(owner.is_in_place());
  const OutputLock next(root_.path(), {"node8", 1, "def"}, kAtOnce);
  EXPECT_FALSE(owner.is_in_place());
  EXPECT_FALSE(rank.is_in_place());
  EXPECT_TRUE(next.is_in_place());
}

/// Throws for a folder that cannot be examined, rather than say that there is none.
TEST_F(CheckpointDirectoryTest, ALinkThatLeadsToItselfIsAnIoError) {
  std::filesystem::create_symlink("loop", root_ / "loop");
  EXPECT_THROW((void)list_checkpoints(files_, root_ / "loop"), IoError);
  EXPECT_THROW(prepare_output_folder(files_, root_ / "loop"), IoError);
  EXPECT_TRUE(list_checkpoints(files_, root_ / "none").empty());
}

TEST_F(CheckpointDirectoryTest, ADyingRankIsWaitedFor) {
  auto owner = std::make_unique<OutputLock>(root_.path(), LockOwner{"node7", 4711, "abc"}, kAtOnce);
  auto rank = std::make_unique<OutputLock>(OutputLock::join(root_.path()));
  owner.reset();
  std::thread dying([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    rank.reset();
  });
  std::atomic<int> beats = 0;
  EXPECT_NO_THROW(
      OutputLock(root_.path(), {"node8", 1, "def"}, kDyingProcess, Beat([&beats] { ++beats; })));
  EXPECT_GE(beats, 2) << "who waits says that it does";
  dying.join();
}

// Fault 33.
TEST_F(CheckpointDirectoryTest, AFolderWithoutLocksSaysWhatToChange) {
  for (const int error : {ENOLCK, EOPNOTSUPP}) {
    const NoLocks no_locks(error);
    const std::string text = message_of<HostError>([&] {
      const OutputLock lock(root_.path(), {"node7", 1, "abc"}, kAtOnce);
    });
    EXPECT_NE(text.find(root_.path() + ": its file system has no locks ("), std::string::npos);
    EXPECT_NE(text.find("NFS: without 'nolock'"), std::string::npos) << text;
  }
}

TEST_F(CheckpointDirectoryTest, NoRankJoinsARunThatHasNotBegun) {
  EXPECT_THROW(OutputLock::join(root_.path()), IoError);
}

// Fault 33.
TEST_F(CheckpointDirectoryTest, ADeadOwnerLocksNothing) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const OutputLock lock(root_.path(), {"node7", 1, "abc"});
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THROW(OutputLock(root_.path(), {"node8", 2, "def"}, kAtOnce), HostError);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_NO_THROW(OutputLock(root_.path(), {"node8", 2, "def"}, kAtOnce));
  ::close(ready[0]);
  ::close(ready[1]);
}

// Each operation of point_latest fails in turn: `latest` still points to a checkpoint, and the next
// attempt succeeds, whether of this run or of one that begins.
TEST_F(CheckpointDirectoryTest, LatestSaysTheOldOrTheNewCheckpointWhenPointingFails) {
  const fs::path latest = output() + "/" + kLatestName;
  save(1);
  save(2);
  for (const FileOperation operation :
       {FileOperation::make_link, FileOperation::sync_directory, FileOperation::rename})
    for (const bool restarted : {false, true})
      for (int nth = 1;; ++nth) {
        ASSERT_LT(nth, 10);
        point_latest(files_, output(), 1);
        FailingFileSystem failing(files_,
                                  {.operation = operation, .nth = nth, .error_number = EIO});
        const std::string message =
            message_of<IoError>([&] { point_latest(failing, output(), 2); });
        if (failing.fired() == 0) {
          EXPECT_EQ(message, "no error");
          EXPECT_GT(nth, 1);
          break;
        }
        EXPECT_NE(message.find(output()), std::string::npos) << message;
        const std::string said = fs::read_symlink(latest);
        EXPECT_TRUE(said == "step-00000001" || said == "step-00000002") << message;
        if (restarted) {
          remove_leftovers(files_, output());
          EXPECT_EQ(names(), (std::set<std::string>{"latest", "step-00000001", "step-00000002"}));
        }
        point_latest(files_, output(), 2);
        EXPECT_EQ(fs::read_symlink(latest), "step-00000002");
      }
}

struct FaultCase {
  const char* name;
  FileOperation operation;
  int error_number;
  bool lasting;
};

class FaultsDuringSave : public CheckpointDirectoryTest,
                         public testing::WithParamInterface<FaultCase> {};
INSTANTIATE_TEST_SUITE_P(
    Fault, FaultsDuringSave,
    testing::Values(FaultCase{"create", FileOperation::create, ENOSPC, false},
                    FaultCase{"reserve", FileOperation::reserve, ENOSPC, true},
                    FaultCase{"open", FileOperation::open, EMFILE, false},
                    FaultCase{"write", FileOperation::write, EIO, false},
                    FaultCase{"full_disk", FileOperation::write, ENOSPC, true},
                    FaultCase{"sync", FileOperation::sync, EIO, false},
                    FaultCase{"make_directory", FileOperation::make_directory, EDQUOT, false},
                    FaultCase{"sync_directory", FileOperation::sync_directory, EIO, false},
                    FaultCase{"rename", FileOperation::rename, EIO, true}),
    [](const testing::TestParamInfo<FaultCase>& fault) { return std::string(fault.param.name); });

// Faults 14, 17.
// The nth operation fails, for n = 1, 2, ... until the save succeeds.
TEST_P(FaultsDuringSave, TheOldCheckpointStaysChosen) {
  const auto& [name, operation, error_number, lasting] = GetParam();
  save(1);
  int failures = 0;
  for (const bool same_step : {false, true}) {
    for (int nth = 1;; ++nth) {
      ASSERT_LT(nth, 300);
      FailingFileSystem failing(files_, {.operation = operation,
                                         .nth = nth,
                                         .error_number = error_number,
                                         .lasting = lasting,
                                         .partial = nth % 2 == 1});
      const std::int64_t step = same_step ? 1 : 2;
      const std::string message = message_of<IoError>([&] { save(step, &failing); });
      if (failing.fired() == 0) {
        EXPECT_EQ(message, "no error");
        EXPECT_EQ(newest(), step);
        fs::remove_all(output() + "/step-00000002");
        break;
      }
      ++failures;
      EXPECT_NE(message.find(std::strerror(error_number)), std::string::npos) << message;
      EXPECT_NE(message.find(output()), std::string::npos) << message;
      remove_leftovers(files_, output());  // the next start
      EXPECT_EQ(newest(), 1) << message;
      EXPECT_EQ(names(), (std::set<std::string>{"step-00000001"})) << message;
    }
  }
  EXPECT_GT(failures, 1);
}

}  // namespace
}  // namespace strata::train
