// Tests what signals to mlaunch, and its own death, do to the processes of a run.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "core/testing/test_directory.h"
#include "tests/launcher/actors.h"

namespace strata::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Mlaunch, CtrlCEndsWillingRanksAtOnce) {
  MlaunchProcess mlaunch(
      {"--grace", "1000", "-np", "8", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 8));
  mlaunch.send(SIGINT);
  EXPECT_EQ(mlaunch.wait(), 130);
  EXPECT_EQ(mlaunch.error_lines().back(), "mlaunch: ended by Ctrl-C");
  expect_nothing_left(mlaunch);
}

TEST(Mlaunch, CtrlCEndsStubbornRanksAfterTheGrace) {
  MlaunchProcess mlaunch(actors(8, {"stubborn"}, {"--grace", "1"}));
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 8));
  mlaunch.send(SIGINT);
  EXPECT_EQ(mlaunch.wait(seconds(25)), 130) << "before the 30 s of a run without --grace";
  EXPECT_EQ(mlaunch.error_lines().back(),
            "mlaunch: ended by Ctrl-C; ranks 0-7 did not end in time and were killed");
  expect_nothing_left(mlaunch);
}

TEST(Mlaunch, ASecondCtrlCKillsAtOnce) {
  MlaunchProcess mlaunch(actors(8, {"stubborn"}, {"--grace", "1000"}));
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 8));
  mlaunch.send(SIGINT);
  ASSERT_TRUE(mlaunch.wait_for_error("Ctrl-C"));
  mlaunch.send(SIGINT);
  EXPECT_EQ(mlaunch.wait(), 130);
  EXPECT_EQ(mlaunch.error_lines().back(), "mlaunch: ended by Ctrl-C; ranks 0-7 were killed");
  expect_nothing_left(mlaunch);
}

TEST(Mlaunch, TermEndsTheRun) {
  MlaunchProcess mlaunch(
      {"--grace", "1000", "-np", "4", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 4));
  mlaunch.send(SIGTERM);
  EXPECT_EQ(mlaunch.wait(), 143);
  expect_nothing_left(mlaunch);
}

// Fault 36.
TEST(Mlaunch, TermAndUsr1LetRanksSaveAndStop) {
  for (const int number : {SIGTERM, SIGUSR1}) {
    MlaunchProcess mlaunch(actors(4, {"save"}));
    ASSERT_TRUE(mlaunch.wait_for_output("ready", 4));
    mlaunch.send(number);
    EXPECT_EQ(mlaunch.wait(), 75);
    EXPECT_TRUE(
        mlaunch.wait_for_output("saved after signal " + std::to_string(number), 4, milliseconds(0)))
        << mlaunch.output();
    EXPECT_EQ(mlaunch.error_lines().back(), number == SIGTERM
                                                ? "mlaunch: stopped on request (SIGTERM)"
                                                : "mlaunch: stopped on request");
    expect_nothing_left(mlaunch);
  }
}

// Fault 36.
TEST(Mlaunch, RanksThatDoNotStopInTimeAreKilled) {
  MlaunchProcess mlaunch(actors(4, {"stubborn"}, {"--grace", "1"}));
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 4));
  mlaunch.send(SIGTERM);
  EXPECT_EQ(mlaunch.wait(), 75);
  EXPECT_TRUE(contains(mlaunch.error(), "have up to 1 s to stop by themselves"));
  EXPECT_EQ(mlaunch.error_lines().back(),
            "mlaunch: ended by SIGTERM; ranks 0-3 did not end in time and were killed");
  expect_nothing_left(mlaunch);
}

// Fault 36.
TEST(Mlaunch, ASecondTermDoesNotWaitForTheGrace) {
  MlaunchProcess mlaunch(actors(4, {"stubborn"}, {"--grace", "1000"}));
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 4));
  mlaunch.send(SIGTERM);
  ASSERT_TRUE(mlaunch.wait_for_error("have up to 1000 s to stop by themselves"));
  mlaunch.send(SIGTERM);
  EXPECT_EQ(mlaunch.wait(), 143);
  expect_nothing_left(mlaunch);
}

TEST(Mlaunch, SuspendingStopsTheRanksToo) {
  MlaunchProcess mlaunch({"-np", "2", "sh", "-c", "while sleep 0.01; do echo tick; done"});
  ASSERT_TRUE(mlaunch.wait_for_output("tick", 4));
  mlaunch.send(SIGTSTP);
  ASSERT_TRUE(mlaunch.all_suspended());
  const int printed = static_cast<int>(std::ranges::count(mlaunch.output(), '\n'));
  EXPECT_FALSE(mlaunch.wait_for_output("tick", printed + 1, milliseconds(200)));
  mlaunch.send(SIGCONT);
  EXPECT_TRUE(mlaunch.wait_for_output("tick", printed + 4));
  mlaunch.send(SIGTERM);
  EXPECT_EQ(mlaunch.wait(), 143);
}

TEST(Mlaunch, ASignalEndsTheWaitForWhoReadsTheLastOutput) {
  const TestDirectory home;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    const std::string pipe = home / std::to_string(number);
    MlaunchProcess mlaunch = MlaunchProcess::in_shell(
        "mkfifo '" + pipe + "'; sleep 1000 < '" + pipe + "' > /dev/null 2>&1 & exec $0 -np 1 " +
        "sh -c 'head -c 300000 /dev/zero; exit 70' > '" + pipe + "'");
    ASSERT_TRUE(mlaunch.wait_for_error("exited with code 70")) << "the run has ended";
    EXPECT_EQ(mlaunch.wait(milliseconds(1500)), -1) << "its reader has its time";
    mlaunch.send(number);
    EXPECT_EQ(mlaunch.wait(), 70);
  }
}

TEST(Mlaunch, KeepsIgnoringWhatItsStarterIgnores) {
  const TestDirectory home;
  MlaunchProcess mlaunch = MlaunchProcess::in_shell(
      "trap '' HUP; cd '" + home.path() +
      "'; exec $0 -np 2 sh -c 'echo ready; while ! test -e on; do sleep 0.02; done'");
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 2));
  mlaunch.send(SIGHUP);
  home.file("on", "");
  EXPECT_EQ(mlaunch.wait(), 0);
  EXPECT_EQ(mlaunch.error(), "");
}

// Fault 12.
TEST(Mlaunch, RanksDieWithAKilledMlaunch) {
  MlaunchProcess mlaunch(actors(8, {"stubborn"}));
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 8));
  EXPECT_GE(mlaunch.living().size(), 9u);
  mlaunch.send(SIGKILL);
  EXPECT_EQ(mlaunch.wait(), 1000 + SIGKILL);
  EXPECT_TRUE(mlaunch.all_gone(seconds(5)));
}

TEST(Mlaunch, NoGrandchildSurvives) {
  for (const int code : {0, 70}) {
    MlaunchProcess mlaunch(actors(4, {"grandchildren", "2", std::to_string(code)}));
    EXPECT_EQ(mlaunch.wait(), code) << mlaunch.error();
    expect_nothing_left(mlaunch);
  }
}

TEST(Mlaunch, LeavesProcessesAloneThatItInherited) {
  MlaunchProcess mlaunch = MlaunchProcess::in_shell(
      "sleep 1000 > /dev/null 2>&1 & exec $0 -np 2 sh -c 'setsid sleep 1000 & echo done'");
  EXPECT_EQ(mlaunch.wait(), 0);
  const std::vector<std::string> living = mlaunch.living();
  ASSERT_EQ(living.size(), 1u);
  EXPECT_TRUE(contains(living[0], "sleep"));
}

}  // namespace
}  // namespace strata::testing
