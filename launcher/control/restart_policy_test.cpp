#include "launcher/control/restart_policy.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace strata::launcher {
namespace {

using std::chrono::minutes;

constexpr int kKilled = 137;

/// The end of an attempt that a kill ended in `step`, after a checkpoint of `committed` steps.
AttemptEnd killed(std::int64_t step, std::int64_t committed) {
  return {.exit_code = kKilled,
          .step = step,
          .signature = "killed by signal 9",
          .committed = committed};
}

class RestartPolicyTest : public testing::Test {
 protected:
  RestartPolicy::Decision after(const AttemptEnd& end, minutes later = minutes(1)) {
    return policy_.after(now_ += later, end);
  }
  RestartPolicy policy_{RestartPolicy::Limits{}};
  RestartPolicy::TimePoint now_{};
};

TEST_F(RestartPolicyTest, StartsARunAgainThatHasCommitted) {
  EXPECT_TRUE(after(killed(57, 40)).restart);
}

TEST_F(RestartPolicyTest, EndsARunThatHasCommittedNothing) {
  const auto decision = after(killed(-1, -1));
  EXPECT_FALSE(decision.restart);
  EXPECT_EQ(decision.exit_code, kKilled);
  EXPECT_EQ(decision.why, "") << "no step is lost";
}

TEST_F(RestartPolicyTest, SaysWhyARunThatLosesItsStepsGetsNoOtherStart) {
  const auto decision = after(killed(7, -1));
  EXPECT_FALSE(decision.restart);
  EXPECT_EQ(decision.exit_code, kKilled);
  EXPECT_NE(decision.why.find("nothing has been saved yet (train --save-every N"),
            std::string::npos)
      << decision.why;
}

TEST_F(RestartPolicyTest, SaysWhyARunThatAsksForAnotherStartGetsNone) {
  AttemptEnd hung = killed(-1, -1);
  hung.exit_code = 75;
  const auto decision = after(hung);
  EXPECT_FALSE(decision.restart);
  EXPECT_EQ(decision.why,
            "the ranks do not start again by themselves, as nothing has been saved yet (train "
            "--save-every N saves each N steps); with --max-restarts N they start again all the "
            "same, from the beginning");
}

TEST_F(RestartPolicyTest, StartsSuchARunAgainIfAskedTo) {
  policy_ = RestartPolicy({.most_restarts = 1, .without_commit = true});
  EXPECT_TRUE(after(killed(7, -1)).restart);
  EXPECT_FALSE(after(killed(9, -1)).restart);
}

// Fault 37.
TEST_F(RestartPolicyTest, NeverStartsAgainWhatWouldEndAlike) {
  for (const ExitCode code :
       {ExitCode::usage, ExitCode::data, ExitCode::configuration, ExitCode::do_not_restart}) {
    AttemptEnd end = killed(57, 40);
    end.exit_code = static_cast<int>(code);
    EXPECT_FALSE(after(end).restart) << end.exit_code;
  }
  AttemptEnd unstarted = killed(-1, 40);
  unstarted.could_start = false;
  EXPECT_FALSE(after(unstarted).restart);
}

TEST_F(RestartPolicyTest, EndsWhatWasAskedToEnd) {
  AttemptEnd end = killed(57, 40);
  end.was_asked = true;
  end.exit_code = 75;
  EXPECT_FALSE(after(end).restart);
}

TEST_F(RestartPolicyTest, EndsWhatHasDoneItsWorkAndTellsOfAFailureBesideIt) {
  AttemptEnd end = killed(57, 57);
  end.done = true;
  end.exit_code = 74;
  const auto decision = after(end);
  EXPECT_FALSE(decision.restart);
  EXPECT_EQ(decision.exit_code, 74);
}

// Fault 37.
TEST_F(RestartPolicyTest, AllowsSoManyRestartsInAnyHour) {
  EXPECT_TRUE(after(killed(45, 40)).restart);
  EXPECT_TRUE(after(killed(55, 50)).restart);
  EXPECT_TRUE(after(killed(65, 60)).restart);
  const auto fourth = after(killed(75, 70));
  EXPECT_FALSE(fourth.restart);
  EXPECT_EQ(fourth.exit_code, kKilled);
  EXPECT_NE(fourth.why.find("--max-restarts"), std::string::npos) << fourth.why;
  EXPECT_TRUE(after(killed(85, 80), minutes(57)).restart) << "the first was over an hour ago";
}

// Fault 37.
TEST_F(RestartPolicyTest, GivesUpAfterThreeEqualFailuresAtOneStep) {
  EXPECT_TRUE(after(killed(57, 40)).restart);
  EXPECT_TRUE(after(killed(57, 45)).restart);
  const auto third = after(killed(57, 50));
  EXPECT_FALSE(third.restart);
  EXPECT_EQ(third.exit_code, 93);
  EXPECT_TRUE(third.gave_up);
  EXPECT_EQ(third.why, "3 starts failed alike at step 57");
}

TEST_F(RestartPolicyTest, FailuresOfUnknownStepsAreNotAlikeWhereTheRunGotOn) {
  EXPECT_TRUE(after(killed(-1, 40)).restart);
  EXPECT_TRUE(after(killed(-1, 50)).restart);
  EXPECT_TRUE(after(killed(-1, 60)).restart);
}

// Fault 37.
TEST_F(RestartPolicyTest, GivesUpAfterThreeStartsWithoutANewerCommit) {
  EXPECT_TRUE(after(killed(57, 40)).restart) << "this one has committed step 40";
  EXPECT_TRUE(after(killed(51, 40)).restart);
  EXPECT_TRUE(after(killed(44, 40)).restart);
  const auto last = after(killed(48, 40));
  EXPECT_EQ(last.exit_code, 93);
  EXPECT_EQ(last.why, "3 starts have committed no newer checkpoint");
}

// Fault 37.
TEST_F(RestartPolicyTest, StartsThatWereKeptOutAreNoSignThatTheRunFails) {
  policy_ = RestartPolicy({.most_restarts = 5});
  EXPECT_TRUE(after(killed(57, 40)).restart);
  AttemptEnd kept_out = killed(-1, 40);
  kept_out.exit_code = static_cast<int>(ExitCode::host);
  kept_out.is_kept_out = true;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(after(kept_out).restart) << i;
  const auto last = after(kept_out);
  EXPECT_FALSE(last.restart) << "all restarts of this hour are used up";
  EXPECT_EQ(last.exit_code, static_cast<int>(ExitCode::host));
}

// Fault 37.
TEST_F(RestartPolicyTest, EndsARunThatAFullDiskKeepsOutAfterItsFailedSave) {
  AttemptEnd save = killed(100, 40);
  save.exit_code = static_cast<int>(ExitCode::io);
  EXPECT_TRUE(after(save).restart);
  AttemptEnd kept_out = killed(-1, 40);
  kept_out.exit_code = static_cast<int>(ExitCode::host);
  kept_out.is_kept_out = true;
  const auto decision = after(kept_out);
  EXPECT_FALSE(decision.restart) << "one more start would be refused alike";
  EXPECT_EQ(decision.exit_code, static_cast<int>(ExitCode::io)) << "the first cause";
  EXPECT_NE(decision.why.find("after the failed save or read"), std::string::npos);
}

// Fault 37.
TEST_F(RestartPolicyTest, EndsARunWhoseDiskIsFullToTheLastByte) {
  AttemptEnd kept_out = killed(-1, 40);
  kept_out.exit_code = static_cast<int>(ExitCode::io);
  kept_out.is_kept_out = true;
  EXPECT_TRUE(after(killed(57, 40)).restart);
  EXPECT_TRUE(after(kept_out).restart) << "a disk may have been away for a moment";
  const auto decision = after(kept_out);
  EXPECT_FALSE(decision.restart);
  EXPECT_EQ(decision.exit_code, static_cast<int>(ExitCode::io));
}

// Fault 37.
TEST_F(RestartPolicyTest, EndsARunThatAHostRefusesAtItsFirstStart) {
  AttemptEnd refused = killed(-1, 10);
  refused.exit_code = static_cast<int>(ExitCode::host);
  const auto decision = after(refused);
  EXPECT_FALSE(decision.restart) << "it goes on from a checkpoint, and has done nothing";
  EXPECT_EQ(decision.exit_code, static_cast<int>(ExitCode::host));
  RestartPolicy asked({.without_commit = true});
  EXPECT_TRUE(asked.after(now_, refused).restart) << "--max-restarts was typed";
}

// Fault 37.
TEST_F(RestartPolicyTest, StartsThatWereKeptOutBreakNoRowOfEqualFailures) {
  policy_ = RestartPolicy({.most_restarts = 9});
  AttemptEnd kept_out = killed(-1, 45);
  kept_out.is_kept_out = true;
  EXPECT_TRUE(after(killed(57, 40)).restart);
  EXPECT_TRUE(after(killed(57, 45)).restart);
  EXPECT_TRUE(after(kept_out).restart);
  EXPECT_EQ(after(killed(57, 50)).why, "3 starts failed alike at step 57");
}

// Fault 24.
TEST_F(RestartPolicyTest, EndsAfterTwoKillsForLackOfMemoryAtOneStep) {
  AttemptEnd end = killed(57, 40);
  end.out_of_memory = true;
  EXPECT_TRUE(after(end).restart);
  const auto second = after(end);
  EXPECT_FALSE(second.restart);
  EXPECT_EQ(second.exit_code, kKilled);
  end.step = 58;
  RestartPolicy other{RestartPolicy::Limits{}};
  EXPECT_TRUE(other.after(now_, killed(57, 40)).restart);
  EXPECT_TRUE(other.after(now_, end).restart) << "another step, another cause";
}

TEST_F(RestartPolicyTest, NeverStartsAgainWithoutRestarts) {
  policy_ = RestartPolicy({.most_restarts = 0, .without_commit = true});
  EXPECT_FALSE(after(killed(57, 40)).restart);
}

}  // namespace
}  // namespace strata::launcher
