#include "launcher/report/hang_report.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

// Fault 8.
TEST(HangReport, SaysWhatHoldsTheRankBehindAndThoseThatWait) {
  const Hang hang{.kind = Hang::Kind::behind, .rank = 1, .waiting = {0, 2}};
  const std::vector<ThreadFacts> threads{{7, "train", 'S', "futex_do_wait", ""},
                                         {8, "disk", 'D', "", "fsync of /data/x"}};
  const std::vector<HangEvidence> evidence{
      {.rank = 1, .threads = threads, .stacks = "TID 7:\n#0 wait\n"},
      {.rank = 0,
       .waits = true,
       .where = "step 12, in collective 40 'gather layer.3'",
       .threads = {{9, "train", 'R', "", ""}},
       .stacks = "TID 9:\n#0 board\n"}};
  EXPECT_EQ(describe_evidence(hang, evidence),
            "  held    rank 1: in fsync of /data/x\n"
            "  waits   rank 0: step 12, in collective 40 'gather layer.3'; computing\n"
            "  threads rank 1: 'disk' waits for a device, fsync of /data/x\n"
            "          'train' sleeps in futex_do_wait\n"
            "          rank 0: 'train' runs\n"
            "  stack   rank 1:\n"
            "          TID 7:\n"
            "          #0 wait\n"
            "          rank 0:\n"
            "          TID 9:\n"
            "          #0 board");
  EXPECT_EQ(hang_advice(hang, {evidence[0]}),
            "look at the disk or file system that it waits for (df -h, dmesg)");
  const HangEvidence asleep{.rank = 1, .threads = {{7, "train", 'S', "futex_do_wait", ""}}};
  HangEvidence paging = evidence[0];
  paging.threads = {{1, "train", 'D', "do_swap_page", "", true}};
  EXPECT_TRUE(hang_advice(hang, {paging}).starts_with("memory is short on its host"));
  EXPECT_EQ(hang_advice(hang, {asleep}),
            "if it only needs longer, give more: mlaunch --hang-timeout SECONDS");
}

TEST(HangReport, CutsLongStacks) {
  std::string stacks;
  for (int i = 0; i < 100; ++i) stacks += "#" + std::to_string(i) + " f\n";
  const std::string text = describe_evidence({}, {{.rank = 0, .stacks = stacks}});
  EXPECT_NE(text.find("#23 f"), std::string::npos);
  EXPECT_EQ(text.find("#24 f"), std::string::npos);
}

// Fault 7.
TEST(HangReport, KnowsWhoStoppedARank) {
  const Hang held{.kind = Hang::Kind::held, .rank = 0};
  EXPECT_NE(hang_advice(held, {}).find("kill -STOP"), std::string::npos);
}

// Fault 7.
TEST(HangReport, KnowsAFrozenRank) {
  const Hang held{.kind = Hang::Kind::held, .rank = 0};
  const ProcessState frozen{.frozen = true, .thaw = "echo 0 > /groups/job/cgroup.freeze"};
  const HangEvidence evidence{
      .rank = 0, .process = frozen, .threads = {{7, "train", 'D', "hrtimer_nanosleep", ""}}};
  EXPECT_EQ(describe_evidence(held, {evidence}),
            "  held    in a frozen control group\n"
            "  threads 'train' is frozen in hrtimer_nanosleep");
  EXPECT_NE(describe_evidence({.host = "1 (b)"}, {evidence}).find("held    rank 0: in a frozen"),
            std::string::npos);
  const std::string advice = hang_advice(held, {evidence});
  EXPECT_NE(advice.find("docker unpause thaws it, or echo 0 > /groups/job/cgroup.freeze"),
            std::string::npos)
      << advice;
  EXPECT_EQ(why_it_stays(7, evidence),
            "rank 0 (process 7) was killed but does not end: its control group is frozen. It ends "
            "once that is thawed: echo 0 > /groups/job/cgroup.freeze");
}

TEST(HangReport, SaysWhatAKilledRankWaitsFor) {
  const HangEvidence evidence{.rank = 1, .threads = {{7, "train", 'D', "", "fsync of /data/x"}}};
  EXPECT_NE(why_it_stays(7, evidence).find("waits inside the kernel (in fsync of /data/x)"),
            std::string::npos)
      << why_it_stays(7, evidence);
}

}  // namespace
}  // namespace strata::launcher
