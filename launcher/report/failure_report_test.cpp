#include "launcher/report/failure_report.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace strata::launcher {
namespace {

FailureFacts killed_in_a_collective() {
  FailureFacts facts;
  facts.rank = 3;
  facts.ranks = 8;
  facts.program = "train";
  facts.ending = {Ending::Kind::killed, SIGKILL};
  facts.where = "step 12, backward, instruction 340 'x', in collective 18 'y'";
  for (const char* where : {"a", "a", "b", "ignored", "a", "a", "", "a"})
    facts.others.push_back({where, "", std::nullopt});
  return facts;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(FailureReport, SaysRankSignalPlaceAndAdvice) {
  EXPECT_EQ(failure_report(killed_in_a_collective()),
            "mlaunch: rank 3 of 8 failed: train was killed by signal 9 (SIGKILL)\n"
            "  where   step 12, backward, instruction 340 'x', in collective 18 'y'\n"
            "  others  rank 0-1, 4-5, 7: a\n"
            "          rank 2: b\n"
            "  advice  mlaunch did not send it: probably the kernel's out-of-memory killer (see "
            "dmesg), a memory limit of the container or job scheduler, or somebody's kill -9\n");
}

TEST(FailureReport, SaysFromWhereTheRunCanGoOn) {
  FailureFacts facts = killed_in_a_collective();
  facts.error = "lost";
  EXPECT_FALSE(contains(failure_report(facts), "resume"));
  facts.resume = resume_text(40, "/data/out/step-00000040");
  EXPECT_TRUE(contains(failure_report(facts),
                       "  error   lost\n"
                       "  resume  step 40 is saved in /data/out/step-00000040; the same command "
                       "with --resume auto goes on from there\n"
                       "  advice  "));
}

TEST(FailureReport, SaysTimesInAPhaseFromASecondOn) {
  FailureFacts facts = killed_in_a_collective();
  facts.where = "loading";
  facts.phase_seconds = 0.99;
  facts.others[0].phase_seconds = 12.9;
  facts.others[1].phase_seconds = 11;
  const std::string report = failure_report(facts);
  EXPECT_TRUE(contains(report, "  where   loading\n"));
  EXPECT_TRUE(contains(report,
                       "  others  rank 0-1, 4-5, 7: a, for 12 s in this phase\n"
                       "          rank 2: b\n"))
      << report;
  facts.phase_seconds = 61;
  EXPECT_TRUE(contains(failure_report(facts), "  where   loading, for 61 s in this phase\n"));
}

TEST(FailureReport, PlacesStandInTheOrderOfRanks) {
  FailureFacts facts = killed_in_a_collective();
  for (std::size_t rank = 0; rank < facts.others.size(); ++rank)
    facts.others[rank].where = rank % 2 == 0 ? "update" : "backward";
  EXPECT_TRUE(contains(failure_report(facts),
                       "  others  rank 0, 2, 4, 6: update\n"
                       "          rank 1, 5, 7: backward\n"));
}

// Fault 24.
TEST(FailureReport, SaysOutOfMemoryWhenTheKernelCountedOne) {
  FailureFacts facts = killed_in_a_collective();
  facts.out_of_memory_kills = 1;
  facts.peak_rss_bytes = std::int64_t{3} << 30;
  const std::string report = failure_report(facts);
  EXPECT_TRUE(contains(report, "killed 1 process(es) of this machine for lack of memory"));
  EXPECT_TRUE(contains(report, "memory  3072 MiB at its peak"));
}

TEST(FailureReport, SaysWhatMemoryARankTookFrom100MiBOn) {
  constexpr std::int64_t kMiB = 1 << 20;
  FailureFacts facts = killed_in_a_collective();
  facts.peak_rss_bytes = 100 * kMiB - 1;
  EXPECT_FALSE(contains(failure_report(facts), "at its peak"));
  facts.peak_rss_bytes = 100 * kMiB;
  EXPECT_TRUE(contains(failure_report(facts), "  memory  100 MiB at its peak\n"));
  facts.peak_rss_bytes += kMiB / 2;
  EXPECT_TRUE(contains(failure_report(facts), "  memory  101 MiB at its peak\n"));
}

TEST(FailureReport, PrefersTheStatusPagesErrorToStandardError) {
  FailureFacts facts = killed_in_a_collective();
  facts.error_tail = "noise\n";
  EXPECT_TRUE(contains(failure_report(facts), "  error   noise\n"));
  facts.error = "two\nlines";
  EXPECT_TRUE(contains(failure_report(facts), "  error   two\n          lines\n"));
  EXPECT_FALSE(contains(failure_report(facts), "noise"));
}

TEST(FailureReport, SaysWhatElseWentWrongInALineEachBeforeTheError) {
  FailureFacts facts = killed_in_a_collective();
  facts.ending = {Ending::Kind::exited, 65};
  facts.error = "w.safetensors: truncated\nand more";
  const auto failed_with = [&](int rank, int code, const std::string& error) {
    facts.others[static_cast<std::size_t>(rank)] = {"", error, Ending{Ending::Kind::exited, code}};
  };
  failed_with(0, 65, facts.error);
  failed_with(1, 75, "rank 3: w.safetensors: truncated");  // repeats rank 3's error
  failed_with(2, 65, facts.error);
  failed_with(3, 65, "ignored");
  failed_with(4, 74, "/data: no space\n  left");
  failed_with(5, 65, "v.safetensors: missing");
  failed_with(6, 74, "/data: no space left");
  failed_with(7, 0, "");
  EXPECT_EQ(failure_report(facts),
            "mlaunch: rank 3 of 8 failed: train exited with code 65 (bad stored data)\n"
            "  where   step 12, backward, instruction 340 'x', in collective 18 'y'\n"
            "  also    rank 4, 6: /data: no space left\n"
            "          rank 5: v.safetensors: missing\n"
            "          ranks 0, 2 failed likewise\n"
            "  error   w.safetensors: truncated\n"
            "          and more\n"
            "  advice  check or fetch again the file that the error names\n");
}

TEST(FailureReport, KeepsWhatRanksSayThatBlameEachOther) {
  FailureFacts facts = killed_in_a_collective();
  facts.ending = {Ending::Kind::exited, 75};
  facts.error = "rank 5 gives no answer";
  facts.others[5] = {"", "nobody put key 'board'", Ending{Ending::Kind::exited, 75}};
  EXPECT_TRUE(contains(failure_report(facts), "  also    rank 5: nobody put key 'board'\n"));
}

TEST(FailureReport, CountsErrorsThatDifferInNumbersOnly) {
  FailureFacts facts = killed_in_a_collective();
  facts.error = "8 ranks plan 3.00 GiB each, and 20.10 GiB are free";
  facts.others[1].error = "8 ranks plan 3.00 GiB each, and 9.9 GiB are free";
  EXPECT_TRUE(
      contains(failure_report(facts), "  also    rank 1 failed likewise, with other numbers\n"));
}

TEST(FailureReport, SaysOnceThatAllFailedAlike) {
  FailureFacts facts;
  facts.program = "train";
  facts.ranks = 2;
  facts.ending = {Ending::Kind::exited, 78};
  facts.where = "planning";
  facts.error = "--micro-batch 3: 2 ranks";
  facts.others = {{}, {"planning", "--micro-batch 3: 2 ranks", facts.ending}};
  EXPECT_EQ(failure_report(facts),
            "mlaunch: rank 0 of 2 failed, and the others likewise: train exited with code 78 "
            "(configuration)\n"
            "  where   planning\n"
            "  error   --micro-batch 3: 2 ranks\n"
            "  advice  correct the setting that the error names, or make alike what differs "
            "between hosts\n");
}

TEST(FailureReport, CutsLongErrorsOfOthersAndCountsTheRest) {
  FailureFacts facts = killed_in_a_collective();
  facts.others.clear();
  for (int rank = 0; rank < 8; ++rank)
    facts.others.push_back({"", std::string(500, static_cast<char>('a' + rank)), std::nullopt});
  const std::string report = failure_report(facts);
  EXPECT_TRUE(contains(report, "rank 0: " + std::string(400, 'a') + " ...\n"));
  EXPECT_TRUE(contains(report, "rank 4: eee"));
  EXPECT_FALSE(contains(report, "rank 5: fff"));
  EXPECT_TRUE(contains(report, "          and other errors\n"));
}

TEST(FailureReport, DoesNotRepeatWhatASingleRankJustPrinted) {
  FailureFacts facts;
  facts.program = "train";
  facts.ending = {Ending::Kind::exited, 78};
  facts.error_tail = "train: zero_optimization.stage: 7\n";
  EXPECT_FALSE(contains(failure_report(facts), "stage"));
  facts.error = "zero_optimization.stage: 7";
  EXPECT_FALSE(contains(failure_report(facts), "stage"));
  facts.error = "something it did not print";
  EXPECT_TRUE(contains(failure_report(facts), "something"));
}

TEST(FailureReport, TakesNoNoteForTheErrorOfARankThatWasKilled) {
  FailureFacts facts = killed_in_a_collective();
  facts.error_tail =
      "note: times of another machine are not used\n  as they are old\nout of luck\nnote: bye";
  const std::string report = failure_report(facts);
  EXPECT_FALSE(contains(report, "not used"));
  EXPECT_FALSE(contains(report, "are old"));
  EXPECT_FALSE(contains(report, "bye"));
  EXPECT_TRUE(contains(report, "out of luck"));
}

TEST(FailureReport, KeepsTheLastTenLinesAndNoEscapeSequences) {
  FailureFacts facts = killed_in_a_collective();
  for (int i = 0; i < 30; ++i) facts.error_tail += "line" + std::to_string(i) + "\x1b[31m\n";
  const std::string report = failure_report(facts);
  EXPECT_FALSE(contains(report, "line19"));
  EXPECT_TRUE(contains(report, "line20"));
  EXPECT_TRUE(contains(report, "line29"));
  EXPECT_FALSE(contains(report, "\x1b"));
}

TEST(FailureReport, SaysThatARankNeverStarted) {
  FailureFacts facts;
  facts.program = "train";
  facts.spawn_error = "executing train: Exec format error";
  EXPECT_EQ(failure_report(facts),
            "mlaunch: rank 0 of 1 failed: train could not be started\n"
            "  error   executing train: Exec format error\n");
}

TEST(FailureReport, EverySignalAndDocumentedCodeHasAdvice) {
  FailureFacts facts;
  facts.program = "train";
  for (int number = 1; number < 32; ++number) {
    facts.ending = {Ending::Kind::killed, number};
    EXPECT_TRUE(contains(failure_report(facts), "  advice  ")) << number;
  }
  for (const int code : {2, 65, 69, 70, 74, 75, 78, 93}) {
    facts.ending = {Ending::Kind::exited, code};
    EXPECT_TRUE(contains(failure_report(facts), "  advice  ")) << code;
  }
}

TEST(RankList, JoinsNeighbours) {
  EXPECT_EQ(rank_list({}), "");
  EXPECT_EQ(rank_list({0, 1, 2, 4, 6, 7}), "0-2, 4, 6-7");
}

}  // namespace
}  // namespace strata::launcher
