#include "train/run/restart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "comm/factory.h"
#include "core/error.h"
#include "core/new_folders.h"
#include "core/testing/test_directory.h"
#include "train/checkpoint/checkpoint_run.h"
#include "train/engine/weights.h"
#include "train/models/hf_config.h"
#include "train/run/checkpoint_saver.h"
#include "train/run/resume_source.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

TEST(Restart, IsALaterAttemptOfMlaunchs) {
  RankContext context;
  context.started_by = "mlaunch";
  context.run_id = "abc";
  EXPECT_FALSE(restart_of(context));
  context.attempt = 2;
  context.last_step = 57;
  const auto restart = restart_of(context);
  ASSERT_TRUE(restart);
  EXPECT_EQ(restart->attempt, 2);
  EXPECT_EQ(restart->run_id, "abc");
  EXPECT_EQ(restart->last_step, 57);
  context.started_by = "torchrun";  // the options say what to do there
  EXPECT_FALSE(restart_of(context));
}

TEST(Restart, SaysWhatIsLost) {
  Restart restart{.attempt = 2, .run_id = "abc", .last_step = 57};
  EXPECT_EQ(describe_own(restart, 40),
            "attempt 2: goes on from step 40 of this run; steps 41 to 57 are computed again");
  EXPECT_EQ(describe_own(restart, 56),
            "attempt 2: goes on from step 56 of this run; step 57 is computed again");
  EXPECT_EQ(describe_own(restart, 57), "attempt 2: goes on from step 57 of this run");
  EXPECT_EQ(
      describe_anew(restart, 0, true),
      "attempt 2: this run has no checkpoint yet and begins as the first attempt did; steps 1 "
      "to 57 are computed again");
  EXPECT_EQ(
      describe_anew(restart, 0, false),
      "attempt 2: this run saves nothing, since no --output names a folder, and begins as the "
      "first attempt did; steps 1 to 57 are computed again");
  restart.last_step = -1;
  EXPECT_EQ(describe_own(restart, 40), "attempt 2: goes on from step 40 of this run");
  EXPECT_EQ(describe_anew(restart, 0, true),
            "attempt 2: begins as the first attempt did; no step of this run was seen yet")
      << "nothing is lost";
}

/// Starts of runs that write checkpoints to one folder.
class RestartTest : public testing::Test {
 protected:
  RestartTest() {
    listeners_.add([this](const RunEvent& event) {
      if (const auto* note = std::get_if<Note>(&event)) told_.push_back(note->text);
    });
  }
  [[nodiscard]] std::string output() const { return directory_ / "out"; }

  static RankContext context_of(const std::string& run_id, int attempt) {
    RankContext context;
    context.started_by = "mlaunch";
    context.run_id = run_id;
    context.attempt = attempt;
    context.last_step = attempt > 0 ? 9 : -1;
    return context;
  }

  /// Saves steps as this start of a run would.
  void save(const RankContext& context, std::initializer_list<std::int64_t> steps) {
    const auto communicator = comm::make_communicator({}, "single");
    ProgramRequest request{.model = read_model_config("gpt2-tiny"), .options = {}};
    request.options.sequence_length = 16;
    request.options.micro_batch = request.options.global_batch = 1;
    EngineParts parts;
    parts.programs = build_programs(request, communicator->seat(), machine::cpu_machine(1));
    parts.site = std::make_unique<CpuSite>(*communicator);
    Engine engine(std::move(parts));
    initialize_weights(engine, 1);
    const CheckpointOptions options{.resume = "auto"};
    OutputFolder folder(options, output(), context, *communicator, listeners_);
    FailedSave failed;
    LostSteps lost(folder.path());
    CheckpointSaver saver(options, folder, listeners_, failed, lost);
    for (const std::int64_t step : steps) {
      SaveContents contents;
      contents.state.step = step;
      contents.state.data_digest = kUnknownData;
      contents.state.optimizer = "adamw";
      contents.state.state_recipe = "fp32-master";
      contents.state.dtype = "fp32";
      contents.facts = {{kRunIdFact, context.run_id},
                        {kAttemptFact, std::to_string(context.attempt)}};
      ASSERT_TRUE(saver.save(engine, std::move(contents), false));
    }
  }

  /// The step that a start goes on from; -1: it begins anew.
  std::int64_t found_by(const RankContext& context, const CheckpointOptions& options) {
    told_.clear();
    const auto communicator = comm::make_communicator({}, "single");
    OutputFolder folder(options, output(), context, *communicator, listeners_);
    ResumeSource source(options, {}, folder, listeners_);
    const auto point = source.find();
    by_itself_ = source.goes_on_by_itself();
    replaced_ = folder.replaced();
    return point ? point->state.step : -1;
  }
  [[nodiscard]] bool has_told(const std::string& text) const {
    return std::ranges::any_of(
        told_, [&](const std::string& one) { return one.find(text) != std::string::npos; });
  }

  const TestDirectory directory_;
  RunListeners listeners_;
  std::vector<std::string> told_;
  std::vector<std::int64_t> replaced_;
  bool by_itself_ = false;
};

// Fault 1.
TEST_F(RestartTest, GoesOnFromItsOwnRunWhateverTheOptionsSay) {
  save(context_of("mine", 0), {4, 6});
  save(context_of("another", 0), {8});
  const std::string older = output() + "/step-00000004";
  for (const std::string& resume : std::vector<std::string>{"auto", "required", "never", older}) {
    EXPECT_EQ(found_by(context_of("mine", 1), {.resume = resume}), 6) << resume;
    EXPECT_TRUE(has_told("attempt 1: goes on from step 6 of this run; steps 7 to 9 are computed"));
    EXPECT_TRUE(by_itself_);
  }
  EXPECT_EQ(found_by(context_of("mine", 0), {.resume = "auto"}), 8) << "a first start does not";
}

TEST_F(RestartTest, WithoutACheckpointOfItsRunDoesAsTheOptionsSay) {
  save(context_of("another", 0), {3, 8});
  EXPECT_EQ(found_by(context_of("mine", 1), {.resume = "auto"}), 8);
  EXPECT_TRUE(has_told("attempt 1: this run has no checkpoint yet"));
  EXPECT_TRUE(has_told("; step 9 is computed again"));
  EXPECT_EQ(found_by(context_of("mine", 1), {.resume = output() + "/step-00000003"}), 3);
  EXPECT_FALSE(by_itself_);
  EXPECT_EQ(found_by(context_of("mine", 1), {.resume = "never", .overwrite = true}), -1);
  EXPECT_EQ(replaced_, (std::vector<std::int64_t>{3, 8}));
  EXPECT_NE(message_of<Error>([&] {
              found_by(context_of("mine", 1), {.resume = "never"});
            }).find("has checkpoints"),
            std::string::npos);
}

TEST_F(RestartTest, ReplacesOnlyOthersCheckpoints) {
  save(context_of("another", 0), {3});
  save(context_of("mine", 0), {4});
  EXPECT_EQ(found_by(context_of("mine", 1), {.resume = "never", .overwrite = true}), 4);
  EXPECT_EQ(replaced_, (std::vector<std::int64_t>{3}));
}

// Fault 18.
TEST_F(RestartTest, PassesOverWhatIsNotWholeButDoesNotForgetThatItWasSaved) {
  save(context_of("another", 0), {2});
  save(context_of("mine", 0), {4, 6});
  fs::remove(output() + "/step-00000006/model.safetensors");
  EXPECT_EQ(found_by(context_of("mine", 1), {.resume = "auto"}), 4);
  EXPECT_TRUE(has_told("passing over " + output() + "/step-00000006"));
  fs::remove(output() + "/step-00000004/model.safetensors");
  EXPECT_NE(message_of<Error>([&] {
              found_by(context_of("mine", 1), {.resume = "auto"});
            }).find("can be loaded"),
            std::string::npos);
}

TEST_F(RestartTest, WithoutAnOutputFolderBeginsAnewAndSaysSo) {
  const auto communicator = comm::make_communicator({}, "single");
  const RankContext context = context_of("mine", 1);
  const CheckpointOptions options{.resume = "never"};
  OutputFolder folder(options, "", context, *communicator, listeners_);
  EXPECT_FALSE(ResumeSource(options, {}, folder, listeners_).find());
  EXPECT_TRUE(has_told("attempt 1: this run saves nothing"));
  EXPECT_TRUE(has_told("steps 1 to 9 are computed again"));
}

/// The wait is the launcher's to choose: it has killed what holds the lock.
TEST_F(RestartTest, WaitsForTheLockAsLongAsTheLauncherSays) {
  const auto communicator = comm::make_communicator({}, "single");
  const CheckpointOptions options{.resume = "auto"};
  const RankContext first = context_of("mine", 0);
  const OutputFolder straggler(options, output(), first, *communicator, listeners_);
  RankContext second = context_of("mine", 1);
  second.lock_wait = std::chrono::seconds(0);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NE(message_of<Error>([&] {
              OutputFolder(options, output(), second, *communicator, listeners_);
            }).find("in use by run mine"),
            std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
}

TEST_F(RestartTest, AFolderIsMadeAgainWhereOthersRemoveItBeforeItHasALock) {
  std::atomic<bool> ends = false;
  std::jthread refused([&] {
    while (!ends) EXPECT_FALSE(NewFolders().make(output()));
  });
  const auto communicator = comm::make_communicator({}, "single");
  for (int run = 0; run < 200; ++run) {
    EXPECT_NO_THROW(OutputFolder({}, output(), context_of("abc", 0), *communicator, listeners_));
    fs::remove(output() + "/.strata-lock");
    std::error_code gone_already;
    fs::remove(output(), gone_already);
  }
  ends = true;
}

}  // namespace
}  // namespace strata::train
