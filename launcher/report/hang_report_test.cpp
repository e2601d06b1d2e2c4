#include "launcher/report/hang_report.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

// Fault 8.
TEST(HangReport, SaysWhoIsBehindAndWhatHoldsIt) {
  const Hang hang{.kind = Hang::Kind::behind,
                  .rank = 1,
                  .for_how_long = std::chrono::seconds(31),
                  .where = "step 12, update",
                  .collective = 40,
                  .collective_name = "gather layer.3",
                  .waiting = {0, 2}};
  const std::vector<ThreadFacts> threads{{7, "train", 'S', "futex_do_wait", ""},
                                         {8, "disk", 'D', "", "fsync of /data/x"}};
  EXPECT_EQ(hang_report(hang, {{1, {}, threads, "TID 7:\n#0 wait\n"}}),
            "mlaunch: rank 1 has not come to collective 40 'gather layer.3', in which 2 ranks "
            "wait; nothing got done for 31 s; it is at step 12, update\n"
            "  held    in fsync of /data/x\n"
            "  threads 'disk' waits for a device, fsync of /data/x\n"
            "          'train' sleeps in futex_do_wait\n"
            "  stack   TID 7:\n"
            "          #0 wait\n"
            "  advice  look at the disk or file system that it waits for (df -h, dmesg)");
}

TEST(HangReport, BlamesNoDiskForThreadsThatSleep) {
  const std::vector<ThreadFacts> threads{{7, "train", 'S', "futex_do_wait", ""}};
  const std::string report = hang_report({.kind = Hang::Kind::behind}, {{0, {}, threads, ""}});
  EXPECT_TRUE(report.ends_with(
      "advice  if it only needs longer, give more: mlaunch --hang-timeout SECONDS"))
      << report;
}

TEST(HangReport, CutsLongStacks) {
  std::string stacks;
  for (int i = 0; i < 100; ++i) stacks += "#" + std::to_string(i) + " f\n";
  const std::string report = hang_report({.rank = 0}, {{0, {}, {}, stacks}});
  EXPECT_NE(report.find("#23 f"), std::string::npos);
  EXPECT_EQ(report.find("#24 f"), std::string::npos);
}

// Fault 7.
TEST(HangReport, KnowsWhoStoppedARank) {
  const Hang held{.kind = Hang::Kind::held, .rank = 0};
  EXPECT_NE(hang_report(held, {}).find("kill -STOP"), std::string::npos);
}

// Fault 7.
TEST(HangReport, KnowsAFrozenRank) {
  const Hang held{.kind = Hang::Kind::held, .rank = 0};
  const ProcessState frozen{.frozen = true, .thaw = "echo 0 > /groups/job/cgroup.freeze"};
  const HangEvidence evidence{0, frozen, {{7, "train", 'D', "hrtimer_nanosleep", ""}}, ""};
  const std::string report = hang_report(held, {evidence});
  EXPECT_NE(report.find("held    in a frozen control group"), std::string::npos) << report;
  EXPECT_NE(report.find("threads 'train' is frozen in hrtimer_nanosleep"), std::string::npos);
  EXPECT_NE(report.find("docker unpause thaws it, or echo 0 > /groups/job/cgroup.freeze"),
            std::string::npos)
      << report;
  EXPECT_EQ(why_it_stays(7, evidence),
            "rank 0 (process 7) was killed but does not end: its control group is frozen. It ends "
            "once that is thawed: echo 0 > /groups/job/cgroup.freeze");
}

TEST(HangReport, NamesAllRanksThatAreHeld) {
  const Hang hang{
      .kind = Hang::Kind::held, .rank = 1, .for_how_long = std::chrono::seconds(5), .held = {1, 3}};
  const std::vector<ThreadFacts> threads{{7, "train", 'T', "do_signal_stop", ""}};
  const ProcessState stopped{.stopped = true};
  const std::string report = hang_report(hang, {{1, stopped, threads}, {3, stopped, threads}});
  EXPECT_TRUE(report.starts_with("mlaunch: ranks 1, 3 are stopped or frozen, rank 1 for 5 s\n"))
      << report;
  EXPECT_NE(report.find("held    rank 1: stopped by a signal"), std::string::npos) << report;
  EXPECT_NE(report.find("          rank 3: stopped by a signal"), std::string::npos) << report;
}

TEST(HangReport, SaysWhatAKilledRankWaitsFor) {
  const HangEvidence evidence{1, {}, {{7, "train", 'D', "", "fsync of /data/x"}}};
  EXPECT_NE(why_it_stays(7, evidence).find("waits inside the kernel (in fsync of /data/x)"),
            std::string::npos)
      << why_it_stays(7, evidence);
}

}  // namespace
}  // namespace strata::launcher
