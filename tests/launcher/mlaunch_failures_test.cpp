// Tests what mlaunch says and does when ranks fail or hang.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/launcher/actors.h"

namespace strata::testing {
namespace {

using std::chrono::seconds;

TEST(Mlaunch, AFailedRankIsReportedLastAndItsCodeReturned) {
  for (const int code : {1, 78}) {
    MlaunchProcess mlaunch(actors(8, {"fail", "5", std::to_string(code)}));
    EXPECT_EQ(mlaunch.wait(), code);
    const std::string report = report_of(mlaunch);
    EXPECT_TRUE(contains(report, "rank 5 of 8 failed")) << mlaunch.error();
    EXPECT_TRUE(contains(report, "exited with code " + std::to_string(code)));
    EXPECT_TRUE(contains(report,
                         "step 12, backward, instruction 340 'layer3.attention_backward', "
                         "in collective 1 'reduce_scatter layer4'"));
    EXPECT_TRUE(contains(report, "error   the flux of rank 5 is wrong"));
    EXPECT_EQ(mlaunch.error(), report) << "something was printed before or after it";
    expect_nothing_left(mlaunch);
  }
}

// Fault 1.
TEST(Mlaunch, DeathBySignalNamesRankSignalStepPhaseAndInstruction) {
  for (const int number : {SIGKILL, SIGSEGV, SIGABRT}) {
    MlaunchProcess mlaunch(actors(8, {"signal", "3", std::to_string(number)}));
    EXPECT_EQ(mlaunch.wait(), 128 + number);
    const std::string report = report_of(mlaunch);
    EXPECT_TRUE(contains(report, "rank 3 of 8 failed")) << mlaunch.error();
    EXPECT_TRUE(contains(report, "killed by signal " + std::to_string(number)));
    EXPECT_TRUE(contains(report, "step 12, backward, instruction 340"));
    EXPECT_TRUE(contains(report, "others  rank 0-2, 4-7: step 12"));
    EXPECT_TRUE(contains(report, "advice"));
    expect_nothing_left(mlaunch);
  }
}

TEST(Mlaunch, TheCauseIsReportedNotTheRankThatBlamesIt) {
  MlaunchProcess mlaunch(actors(2, {"blame"}));
  EXPECT_EQ(mlaunch.wait(), 65);
  EXPECT_TRUE(contains(report_of(mlaunch), "rank 1 of 2 failed"));
  EXPECT_TRUE(contains(report_of(mlaunch), "model.safetensors: tensor w is cut off"));
}

TEST(Mlaunch, ErrorsOfOtherRanksStandBeforeTheFirstOne) {
  MlaunchProcess mlaunch(actors(4, {"quarrel"}));
  EXPECT_EQ(mlaunch.wait(), 65);
  EXPECT_EQ(without_place(mlaunch.error()),
            std::string("mlaunch: rank 1 of 4 failed: ") + ACTOR_PATH +
                " exited with code 65 (bad stored data)\n"
                "  also    rank 0: /data is not mounted\n"
                "          ranks 2-3 failed likewise\n"
                "  error   model.safetensors: tensor w is cut off\n"
                "  advice  check or fetch again the file that the error names\n");
}

TEST(Mlaunch, StandardErrorOfTheFailedRankIsRepeatedLast) {
  MlaunchProcess mlaunch({"-np", "3", "sh", "-c",
                          "echo only $RANK >&2; test $RANK = 1 || exec sleep 60; "
                          "sleep 0.3; echo no luck >&2; exit 9"});
  EXPECT_EQ(mlaunch.wait(), 9);
  EXPECT_TRUE(contains(mlaunch.error(), "[1] no luck\n"));
  EXPECT_EQ(without_place(report_of(mlaunch)),
            "mlaunch: rank 1 of 3 failed: sh exited with code 9\n"
            "  error   only 1\n"
            "          no luck\n");
}

TEST(Mlaunch, RanksThatIgnoreTermAreKilled) {
  MlaunchProcess mlaunch(actors(8, {"stubborn", "fail"}));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(mlaunch.wait(), 70);
  EXPECT_GE(std::chrono::steady_clock::now() - start, seconds(4));
  EXPECT_TRUE(contains(report_of(mlaunch), "rank 0 of 8 failed"));
  expect_nothing_left(mlaunch);
}

// Fault 1.
TEST(Mlaunch, APeerWaitingAtTheRendezvousIsWokenByADeath) {
  MlaunchProcess mlaunch(actors(4, {"abandon"}));
  EXPECT_EQ(mlaunch.wait(), 137);
  EXPECT_TRUE(mlaunch.wait_for_output("woken", 3, seconds(0))) << "they needed SIGKILL";
  EXPECT_TRUE(contains(report_of(mlaunch), "rank 1 of 4 failed"));
  expect_nothing_left(mlaunch);
}

TEST(Mlaunch, NonsenseAtTheRendezvousCostsThatRankItsConnection) {
  MlaunchProcess mlaunch(actors(1, {"garbage"}));
  EXPECT_EQ(mlaunch.wait(), 75);
  EXPECT_TRUE(contains(mlaunch.error(), "disconnected rank 0 from the rendezvous"));
}

// Fault 7.
TEST(Mlaunch, NamesARankThatIsStoppedAndEndsTheRun) {
  const auto begin = std::chrono::steady_clock::now();
  MlaunchProcess mlaunch(actors(2, {"stop", "1"}));
  EXPECT_TRUE(mlaunch.wait_for_error("has been stopped", seconds(8)));
  EXPECT_EQ(mlaunch.wait(), 75);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(14));
  EXPECT_TRUE(contains(mlaunch.error(),
                       "mlaunch: rank 1 has been stopped or frozen for 5 s; it is "
                       "at step 12, backward"))
      << mlaunch.error();
  EXPECT_TRUE(contains(mlaunch.error(), "the ranks are ended now")) << mlaunch.error();
  expect_nothing_left(mlaunch);
}

// Fault 8.
TEST(Mlaunch, NamesARankThatDoesNotComeToTheCollectiveOfOthers) {
  constexpr seconds kLimit(8);  // over 5 s: the longest pause between two looks is about 1 s
  MlaunchProcess mlaunch(
      actors(3, {"absent", "1"}, {"--hang-timeout", std::to_string(kLimit.count())}));
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 3));
  EXPECT_TRUE(mlaunch.wait_for_error("mlaunch: rank 1 has not come to", kLimit + seconds(4)));
  EXPECT_EQ(mlaunch.wait(), 75);
  EXPECT_TRUE(contains(mlaunch.error(),
                       "mlaunch: rank 1 has not come to collective 2 'gather layer4', in which 2 "
                       "ranks wait; nothing got done for "))
      << mlaunch.error();
  expect_nothing_left(mlaunch);
}

TEST(Mlaunch, WaitsForAStoppedRankIfToldTo) {
  MlaunchProcess mlaunch(actors(2, {"stop", "1"}, {"--hang-timeout", "0"}));
  EXPECT_FALSE(mlaunch.wait_for_error("rank", seconds(8))) << "others are named within 8 s";
  EXPECT_EQ(mlaunch.error(), "");
}

}  // namespace
}  // namespace strata::testing
