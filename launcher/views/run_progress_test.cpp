#include "launcher/views/run_progress.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/json.h"

namespace strata::launcher {
namespace {

using std::chrono::seconds;

class RunProgressTest : public ::testing::Test {
 protected:
  /// A second later rank 0 is in a step.
  void look(std::int64_t step, Phase phase = Phase::forward) {
    RankState rank{.rank = 0, .phase = phase, .step = step, .beats = 1};
    rank.view.loss = 0.5 * static_cast<double>(step);
    rank.view.tokens_per_second = 100;
    status_.ranks = {{"here", rank}};
    look();
  }
  void look() {
    progress_.look(now_, wall_, status_);
    now_ += seconds(1);
    wall_ += seconds(1);
    status_.seconds += 1;
  }
  RunStatus completed() {
    progress_.complete(now_, status_);
    return status_;
  }
  JsonValue history() { return parse_json(progress_.json(), "history", {}); }
  std::string steps() {
    std::string text;
    for (const JsonValue& step : history().at("step").elements())
      text += std::to_string(step.as_integer()) + " ";
    return text;
  }

  RunProgress progress_;
  RunProgress::TimePoint now_{seconds(100)};
  std::chrono::system_clock::time_point wall_{seconds(1'795'000'000)};
  RunStatus status_{.attempt = 0};
};

TEST_F(RunProgressTest, TellsOnceThatSavesFail) {
  const auto last_event = [&] {
    const auto events = history().at("events").elements();
    return std::to_string(events.size()) + " " + events.back().at("text").as_string();
  };
  RankState rank{.rank = 0, .beats = 1};
  status_.ranks = {{"here", rank}};
  look();
  for (int second = 0; second < 2; ++second) {
    status_.ranks[0].state.view.save_failure = SaveFailure{12 + second, 1.0, "no space"};
    look();
  }
  EXPECT_EQ(last_event(), "2 the checkpoint of step 12 could not be written: no space");
  status_.ranks[0].state.view.save_failure.reset();
  look();
  status_.ranks[0].state.view.save_failure = SaveFailure{30, 1.0, "gone"};
  look();
  EXPECT_EQ(last_event(), "3 the checkpoint of step 30 could not be written: gone");
}

TEST_F(RunProgressTest, KnowsWhenARankGotSomethingDone) {
  RankState busy{.rank = 0, .beats = 1}, hung{.rank = 1, .beats = 7}, silent{.rank = 2};
  for (int second = 0; second < 5; ++second) {
    ++busy.beats;
    status_.ranks = {{"here", busy}, {"here", hung}, {"here", silent}};
    look();
  }
  RunStatus status = completed();
  EXPECT_DOUBLE_EQ(status.ranks[0].progress_age, 1);
  EXPECT_DOUBLE_EQ(status.ranks[1].progress_age, 5);
  EXPECT_TRUE(std::isnan(status.ranks[2].progress_age)) << "its program does not tell";
  ++status_.ranks[1].state.beats;
  EXPECT_DOUBLE_EQ(completed().ranks[1].progress_age, 0) << "between two looks";
  ++status_.attempt;
  status_.ranks = {{"here", hung}};
  look();
  EXPECT_DOUBLE_EQ(completed().ranks[0].progress_age, 1) << "another process";
}

TEST_F(RunProgressTest, CountsTimeInSteps) {
  look(0, Phase::loading);
  for (int step = 0; step < 6; ++step) look(step);
  look(6, Phase::saving);
  look(6, Phase::evaluate);
  EXPECT_DOUBLE_EQ(completed().goodput, 6.0 / 9);
}

TEST_F(RunProgressTest, KnowsNothingOfProgramsThatTellNothing) {
  status_.ranks.resize(2);
  look();
  look();
  EXPECT_TRUE(std::isnan(completed().goodput));
  EXPECT_TRUE(std::isnan(completed().checkpoint_age));
  EXPECT_EQ(completed().lost_steps, 0);
}

TEST_F(RunProgressTest, StepsThatAreDoneAgainCountOnce) {
  for (int step = 0; step < 10; ++step) {
    if (step == 5) {
      status_.committed = 5;
      status_.checkpoint = "out/step-5";
    }
    look(step);
  }
  // Steps 0 to 8 were done, 9 was not, and after 5 nothing is saved.
  status_.attempt = 1;
  status_.ranks.clear();
  look();
  EXPECT_EQ(completed().lost_steps, 3);
  for (int step = 5; step < 9; ++step) look(step);
  EXPECT_DOUBLE_EQ(completed().goodput * status_.seconds, 9);
  look(9);
  EXPECT_DOUBLE_EQ(completed().goodput * status_.seconds, 10);
  EXPECT_EQ(steps(), "0 1 2 3 4 5 6 7 8 9 ");
}

TEST_F(RunProgressTest, ACheckpointHasAnAge) {
  look(3);
  status_.committed = 3;
  status_.checkpoint = "out/step-3";
  EXPECT_DOUBLE_EQ(completed().checkpoint_age, 0) << "between two looks";
  look(4);
  look(5);
  EXPECT_DOUBLE_EQ(completed().checkpoint_age, 2);
  const auto events = history().at("events").elements();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].at("text").as_string(), "the ranks start");
  EXPECT_EQ(events[1].at("text").as_string(), "step 3 is saved in out/step-3");
  EXPECT_EQ(events[1].at("at").as_string(), "2026-11-18T11:06:41Z");
}

TEST_F(RunProgressTest, CurvesStayBoundedAndReachToTheEnd) {
  for (int step = 0; step < 10'000; ++step) look(step);
  const JsonValue all = history();
  EXPECT_LT(all.at("step").size(), static_cast<std::int64_t>(RunProgress::kMostPoints));
  EXPECT_GT(all.at("step").size(), 300);
  EXPECT_EQ(all.at("step").elements().front().as_integer(), 0);
  EXPECT_GT(all.at("step").elements().back().as_integer(), 9'950);
  EXPECT_EQ(all.at("loss").size(), all.at("step").size());
  for (int attempt = 1; attempt < 200; ++attempt) {
    status_.attempt = attempt;
    look(1);
  }
  EXPECT_EQ(history().at("events").size(), static_cast<std::int64_t>(RunProgress::kMostEvents));
}

TEST_F(RunProgressTest, OldCheckpointsAreForgottenBeforeOldStarts) {
  look(1);
  for (std::int64_t step = 2; step < 200; ++step) {
    status_.committed = step;
    look(step);
  }
  const auto events = history().at("events").elements();
  EXPECT_EQ(events.size(), RunProgress::kMostEvents);
  EXPECT_EQ(events.front().at("text").as_string(), "the ranks start");
  EXPECT_EQ(events.back().at("text").as_string(), "step 199 is saved in ");
}

TEST_F(RunProgressTest, APauseOfMlaunchIsNoStep) {
  look(1);
  now_ += seconds(1000);
  status_.seconds += 1000;
  look(2);
  EXPECT_LT(completed().goodput, 0.01);
}

}  // namespace
}  // namespace strata::launcher
