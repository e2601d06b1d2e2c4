#include "train/run/checkpoint_saver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "comm/factory.h"
#include "core/error.h"
#include "core/status_page.h"
#include "core/testing/test_directory.h"
#include "train/checkpoint/checkpoint_commit.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/engine/weights.h"
#include "train/models/hf_config.h"

namespace strata::train {
namespace {

/// An engine of one rank with new weights, whose steps may take snapshots.
std::unique_ptr<Engine> make_engine(comm::Communicator& communicator) {
  ProgramRequest request{.model = read_model_config("gpt2-tiny"), .options = {}};
  request.options.sequence_length = 16;
  request.options.micro_batch = request.options.global_batch = 1;
  request.options.steps = 3;
  request.saving = runtime::SaveMemory::snapshot;
  EngineParts parts;
  parts.programs = build_programs(request, communicator.seat(), machine::cpu_machine(1));
  parts.site = std::make_unique<CpuSite>(communicator);
  auto engine = std::make_unique<Engine>(std::move(parts));
  initialize_weights(*engine, 1);
  return engine;
}

void fill_with_ones(std::int64_t, int, const MicroBatch& batch) {
  std::ranges::fill(batch.tokens, 1);
  std::ranges::fill(batch.targets, 1);
}

/// The least contents of a checkpoint that is never loaded.
SaveContents contents_after(std::int64_t step) {
  SaveContents contents;
  contents.state.step = step;
  contents.state.data_digest = kUnknownData;
  contents.state.optimizer = "adamw";
  contents.state.state_recipe = "fp32-master";
  contents.state.dtype = "fp32";
  return contents;
}

/// A saver with a save of step 2 under way, which has heard of step 1 only.
class CheckpointSaverTest : public testing::Test {
 protected:
  void SetUp() override {
    for (std::int64_t step = 0; step < 2; ++step) start_step(step);
    engine_->settle();
    saver_.begin(*engine_, contents_after(2));
    start_step(2);
    engine_->settle();
    (void)saver_.go_on();
  }
  void start_step(std::int64_t step) {
    saver_.raise_flags(*engine_, step);
    if (const auto metrics = engine_->start_step(step, fill_with_ones, saver_.wants_snapshot());
        metrics && step < 2)
      saver_.hear(*metrics);
  }
  void hear(std::int64_t step, bool is_finite) {
    saver_.hear(
        {.step = step - 1, .loss = is_finite ? 1.0 : std::nan(""), .overflow = is_finite ? 0 : 1});
  }
  std::string not_finite() {
    engine_->drain();
    const auto saved = saver_.complete();
    EXPECT_TRUE(saved.has_value());
    return saved ? saved->not_finite : "";
  }

  const TestDirectory directory_;
  const RankContext context_ = [] {
    RankContext context;
    context.run_id = "test";
    return context;
  }();
  const std::unique_ptr<comm::Communicator> communicator_ =
      comm::make_communicator(context_, "single");
  const std::unique_ptr<Engine> engine_ = make_engine(*communicator_);
  const RunListeners listeners_;
  const CheckpointOptions options_;
  OutputFolder folder_{options_, directory_ / "out", context_, *communicator_, listeners_};
  FailedSave failed_;
  LostSteps lost_{directory_ / "out"};
  CheckpointSaver saver_{options_, folder_, listeners_, failed_, lost_};
};

TEST_F(CheckpointSaverTest, AStateIsNotJudgedByLossesOfLaterOnes) {
  hear(2, true);
  hear(3, true);  // computed from the saved state
  hear(4, false);
  EXPECT_EQ(not_finite(), "");
  EXPECT_EQ(saver_.bad_loss(), "loss of step 4");
}

TEST_F(CheckpointSaverTest, AStateIsJudgedByItsOwnLosses) {
  hear(2, true);
  hear(3, false);
  hear(4, false);  // step 3 was skipped, so the state is the same
  EXPECT_EQ(not_finite(), "loss of step 4");
  EXPECT_EQ(lost_.text(4), "steps 1 to 4 are lost: " + (directory_ / "out") +
                               " has no finite checkpoint of this run")
      << "what --resume auto passes over is not saved";
}

TEST_F(CheckpointSaverTest, AStateIsAcquittedByItsNextBatch) {
  hear(2, false);
  hear(3, false);
  hear(4, true);
  hear(5, false);
  EXPECT_EQ(not_finite(), "");
}

/// What two starts of one run leave unfinished must not meet under one name.
TEST(OutputFolderTest, EachStartOfARunHasATagOfItsOwn) {
  const RunListeners listeners;
  const CheckpointOptions options;
  const auto tag_of = [&](const std::string& run_id, int attempt) {
    const TestDirectory directory;
    RankContext context;
    context.run_id = run_id;
    context.attempt = attempt;
    const auto communicator = comm::make_communicator(context, "single");
    return OutputFolder(options, directory / "out", context, *communicator, listeners).run_tag();
  };
  EXPECT_EQ(tag_of("12.0", 0), "12-0");
  EXPECT_EQ(tag_of("12.0", 2), "12-0-attempt-2");
}

// Faults 11, 31.
/// A rank that the launcher gave up may be cut off from it, while others go on in its place.
TEST(CheckpointSaver, CommitsNothingAfterTheEndOfItsLease) {
  const TestDirectory directory;
  StatusPage page = StatusPage::create(0);
  RankContext context;
  context.run_id = "test";
  context.page = &page;
  const auto communicator = comm::make_communicator(context, "single");
  const auto engine = make_engine(*communicator);
  const RunListeners listeners;
  const CheckpointOptions options;
  OutputFolder folder(options, directory / "out", context, *communicator, listeners);
  FailedSave failed;
  LostSteps lost(folder.path());
  CheckpointSaver saver(options, folder, listeners, failed, lost);
  EXPECT_TRUE(saver.save(*engine, contents_after(1), false));
  EXPECT_EQ(page.data().committed_step, 1) << "told without a listener";
  EXPECT_EQ(std::string(page.data().checkpoint), directory / "out/step-00000001");
  page.set_lease(0);
  EXPECT_NE(message_of<PeerError>([&] {
              (void)saver.save(*engine, contents_after(2), false);
            }).find("the launcher no longer counts on this rank"),
            std::string::npos);
  const auto found = list_checkpoints(folder.files(), folder.path());
  EXPECT_EQ(page.data().committed_step, 1);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].step, 1);
}

/// Checkpoints of an earlier run, and what this one makes of them.
class ReplacedCheckpoints : public testing::Test {
 protected:
  /// Saves after each of `steps` as run `id`; `is_blocked`: the first checkpoint of the earlier run
  /// cannot be removed at first.
  void save(const std::string& id, const std::vector<std::int64_t>& steps, bool is_blocked) {
    RankContext context;
    context.run_id = id;
    const auto communicator = comm::make_communicator(context, "single");
    const auto engine = make_engine(*communicator);
    const RunListeners listeners;
    CheckpointOptions options;
    options.resume = "never";
    options.overwrite = true;
    OutputFolder folder(options, directory_ / "out", context, *communicator, listeners);
    FailedSave failed;
    LostSteps lost(folder.path());
    CheckpointSaver saver(options, folder, listeners, failed, lost);
    const std::string blocked =
        folder.path() + "/" + folder_name(8, FolderState::removed, {folder.run_tag(), 1});
    if (is_blocked) std::filesystem::create_directories(blocked + "/block");
    for (const std::int64_t step : steps) {
      EXPECT_TRUE(saver.save(*engine, contents_after(step), false));
      found_.clear();
      for (const FoundCheckpoint& one : list_checkpoints(folder.files(), folder.path()))
        found_.push_back(one.step);
      after_.push_back(found_);
    }
  }

  const TestDirectory directory_;
  std::vector<std::int64_t> found_;
  std::vector<std::vector<std::int64_t>> after_;  ///< what was there after each save
};

TEST_F(ReplacedCheckpoints, GoWithTheNextCommitWhereTheyCannotBeRemoved) {
  save("old", {8}, false);
  after_.clear();
  save("new", {1, 2}, true);
  ASSERT_EQ(after_.size(), 2U);
  EXPECT_EQ(after_[0], (std::vector<std::int64_t>{1, 8}));
  EXPECT_EQ(after_[1], (std::vector<std::int64_t>{1, 2}));
}

/// Metrics come a step late. Those of a step that began before the stage say nothing about it, and
/// a saver that took them for an answer would wait for the drive.
TEST(CheckpointSaver, GoesOnAfterTheFirstStepThatSpeaksOfItsStage) {
  const TestDirectory directory;
  RankContext context;
  context.run_id = "test";
  const auto communicator = comm::make_communicator(context, "single");
  const auto engine = make_engine(*communicator);
  const RunListeners listeners;
  const CheckpointOptions options;
  OutputFolder folder(options, directory / "out", context, *communicator, listeners);
  FailedSave failed;
  LostSteps lost(folder.path());
  CheckpointSaver saver(options, folder, listeners, failed, lost);
  std::int64_t steps = 0;
  const auto start_step = [&] {
    saver.raise_flags(*engine, steps);
    engine->start_step(steps++, fill_with_ones, saver.wants_snapshot());
  };
  start_step();
  EXPECT_FALSE(saver.is_ready());
  engine->settle();
  saver.begin(*engine, contents_after(steps));
  start_step();  // takes the snapshot
  ASSERT_TRUE(saver.is_ready());
  engine->settle();
  EXPECT_FALSE(saver.go_on().has_value());
  saver.hear({.step = 1});  // of the snapshot's step
  EXPECT_FALSE(saver.is_ready());
  saver.hear({.step = 2});
  EXPECT_TRUE(saver.is_ready());
  engine->drain();
  const auto saved = saver.complete();
  ASSERT_TRUE(saved.has_value());
  EXPECT_EQ(saved->step, 1);
  EXPECT_EQ(saver.last_step(), 1);
}

}  // namespace
}  // namespace strata::train
