#include "launcher/report/run_report.h"

#include <gtest/gtest.h>

#include "launcher/report/report_json.h"

namespace strata::launcher {
namespace {

/// Rank 1 on host b ended first; ranks 0 and 1 told `errors`.
AttemptReport failed_on_b(const std::string& of_0, const std::string& of_1) {
  AttemptReport report{.world = 2, .failed_host = 1};
  for (int rank = 0; rank < 2; ++rank) {
    AttemptFacts facts{.exit_code = 74};
    EndedRank ended;
    ended.ending = Ending{Ending::Kind::exited, 74};
    ended.where = "step 100, saving";
    ended.error = rank == 0 ? of_0 : of_1;
    facts.ranks.push_back(ended);
    if (rank == 1) facts.failed = AttemptFacts::Failed{.rank = 1};
    report.hosts.push_back({rank == 0 ? "0 (a)" : "1 (b)", rank, facts});
  }
  return report;
}

Run run_of_train() {
  Run run;
  run.options.command = {"train"};
  return run;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(RunReport, NamesTheRankWhoseErrorAllShare) {
  const std::string error = "the checkpoint could not be written: rank 0: out: no space left";
  const AttemptReport report = failed_on_b(error, error);
  const std::string text = attempt_text(run_of_train(), report, "");
  EXPECT_TRUE(text.starts_with("mlaunch: rank 0 of 2 failed, and the others likewise")) << text;
  EXPECT_TRUE(contains(text, "host    0 (a)")) << text;
  const std::string json = report_json(run_of_train(), report, {});
  EXPECT_TRUE(contains(json, "\"rank\": 0")) << json;
  EXPECT_TRUE(contains(json, "\"host\": \"0 (a)\"")) << json;
}

TEST(RunReport, NamesARankOfWhichNothingElseIsKnown) {
  AttemptReport report = failed_on_b("", "");
  report.hosts[1].facts->ranks.clear();
  EXPECT_TRUE(attempt_text(run_of_train(), report, "").starts_with("mlaunch: rank 1 of 2 failed"));
}

TEST(RunReport, BlamesNoHostAloneForAnErrorThatIsOfNoRank) {
  const std::string error =
      "the ranks do not mean the same run:\nlr: 1 on rank 0 (a), 2 on rank 1 (b)";
  AttemptReport report = failed_on_b(error, error);
  const std::string text = attempt_text(run_of_train(), report, "");
  EXPECT_TRUE(text.starts_with("mlaunch: all 2 ranks failed alike: train exited with code 74"))
      << text;
  EXPECT_TRUE(contains(text, "  hosts   0 (a), 1 (b)\n")) << text;
  EXPECT_TRUE(contains(attempt_text(run_of_train(), failed_on_b("rank 10: x", "rank 10: x"), ""),
                       "  hosts   0 (a), 1 (b)\n"))
      << "there is no rank 10, and rank 1 is another one";
  const std::string json = report_json(run_of_train(), report, {});
  const std::string cause = json.substr(0, json.find("\"ranks\""));
  for (const char* member : {"\"hosts\":", "\"0 (a)\"", "\"1 (b)\""})
    EXPECT_TRUE(contains(cause, member)) << json;
  for (const char* member : {"\"rank\":", "\"host\":", "\"phase\":"})
    EXPECT_FALSE(contains(cause, member)) << json;
  report.hosts[0].facts->ranks[0].error = "";
  EXPECT_TRUE(
      attempt_text(run_of_train(), report, "").starts_with("mlaunch: rank 1 of 2 failed: "));
  report = failed_on_b("rank 1: out", "rank 1: out");
  EXPECT_TRUE(contains(attempt_text(run_of_train(), report, ""), "host    1 (b)")) << "it is named";
}

TEST(RunReport, NamesTheRankThatEndedFirstWhereTheOthersTellSomethingElse) {
  const AttemptReport report = failed_on_b("", "it blames rank 0: out");
  EXPECT_TRUE(attempt_text(run_of_train(), report, "").starts_with("mlaunch: rank 1 of 2 failed"));
}

TEST(RunReport, DoesNotAdviseToResumeWithWhatCannotBegin) {
  AttemptReport report = failed_on_b("", "cannot resume from out/step-300");
  report.committed = 300;
  report.checkpoint = "out/step-300";
  EndedRank& rank = report.hosts[1].facts->ranks[0];
  const auto advises = [&](int code, int step) {
    rank.ending = Ending{Ending::Kind::exited, code};
    rank.step = step;
    return contains(attempt_text(run_of_train(), report, ""), "  resume  step 300 is saved");
  };
  for (const int code : {2, 65, 78}) {
    EXPECT_FALSE(advises(code, -1)) << code;
    EXPECT_TRUE(advises(code, 301)) << code;
  }
  EXPECT_TRUE(advises(69, -1)) << "another host may do";
  EXPECT_TRUE(advises(75, -1));
}

TEST(RunReport, NamesTheSaveThatFailedWhereRanksEndWithoutOne) {
  const std::string error =
      "SIGTERM: 4 s are over; the checkpoint of step 9 could not be written: rank 0: out: no space "
      "left; steps 1 to 9 are lost: out has no checkpoint";
  AttemptReport report = failed_on_b(error, error);
  for (AttemptReport::OfHost& host : report.hosts) {
    host.facts->ranks[0].ending = Ending{Ending::Kind::exited, 75};
    host.facts->ranks[0].save_failure = SaveFailure{9, 3.5, "rank 0: out: no space left"};
  }
  const std::string text = attempt_text(run_of_train(), report, "");
  EXPECT_TRUE(text.starts_with(
      "mlaunch: rank 0 of 2 failed, and the others likewise: train exited with code 75, as the "
      "checkpoint of step 9 could not be written: rank 0: out: no space left\n"))
      << text;
  EXPECT_FALSE(contains(text, "another rank")) << text;
  EXPECT_TRUE(contains(text, "  advice  make room")) << text;
  const std::string json = report_json(run_of_train(), report, {});
  EXPECT_TRUE(contains(json, "\"ending\": \"exited with code 75 (could not save)\"")) << json;
  EXPECT_TRUE(contains(json, "\"why\": \"rank 0: out: no space left\"")) << json;
}

TEST(RunReport, BlamesNoEarlierSaveForTheLossOfAPeer) {
  const std::string error = "rank 1 was killed by signal 9 in all_reduce";
  AttemptReport report = failed_on_b(error, error);
  for (AttemptReport::OfHost& host : report.hosts) {
    host.facts->ranks[0].ending = Ending{Ending::Kind::exited, 75};
    host.facts->ranks[0].save_failure = SaveFailure{9, 3.5, "rank 0: out: no space left"};
  }
  const std::string text = attempt_text(run_of_train(), report, "");
  EXPECT_FALSE(contains(text.substr(0, text.find('\n')), "could not be written")) << text;
  EXPECT_TRUE(contains(text, "  advice  another rank was lost or gave no answer")) << text;
  const std::string json = report_json(run_of_train(), report, {});
  EXPECT_FALSE(contains(json, "(could not save)")) << json;
  EXPECT_TRUE(contains(json, "\"why\": \"rank 0: out: no space left\"")) << "but it is told";
}

TEST(RunReport, NamesRanksThatHadToBeKilled) {
  AttemptReport report{.world = 3};
  AttemptFacts facts{.exit_code = 75, .was_asked = true, .user_signal = 15};
  facts.ranks.resize(3);
  facts.ranks[0].ending = facts.ranks[1].ending = Ending{Ending::Kind::killed, 9};
  facts.ranks[0].where = "step 9, saving";
  facts.ranks[0].save_failure = SaveFailure{9, 3.5, "no space"};
  facts.ranks[2].ending = Ending{Ending::Kind::exited, 75};
  report.hosts.push_back({"0 (a)", 0, facts});
  EXPECT_EQ(killed_ranks(report), (std::vector<int>{0, 1}));
  EXPECT_EQ(attempt_text(run_of_train(), report, ""),
            "mlaunch: ended by SIGTERM; the checkpoint of step 9 could not be written: no space; "
            "ranks 0-1 did not end in time and were killed; rank 0 was at step 9, saving");
  report.hosts[0].facts->exit_code = 130;
  EXPECT_TRUE(contains(attempt_text(run_of_train(), report, ""),
                       "; ranks 0-1 did not end in time and were killed; rank 0"))
      << "after one Ctrl-C, too";
  report.hosts[0].facts->kill_asked = true;
  EXPECT_TRUE(contains(attempt_text(run_of_train(), report, ""), "; ranks 0-1 were killed; rank 0"))
      << "after Ctrl-C twice the time was not over";
  report.hosts[0].facts->exit_code = 75;
  report.hosts[0].facts->kill_asked = false;
  report.hang = Hang{};
  EXPECT_TRUE(contains(attempt_text(run_of_train(), report, ""),
                       "\n  killed  ranks 0-1 did not end in time and were killed"))
      << "a hang is told first";
  report.hang.reset();
  report.hosts[0].facts->failed = AttemptFacts::Failed{.rank = 1};
  EXPECT_TRUE(killed_ranks(report).empty()) << "somebody else killed it";
}

TEST(RunReport, RanksThatStopOnRequestBlameNoOther) {
  AttemptReport report{.world = 1};
  AttemptFacts facts{.exit_code = 75, .was_asked = true, .all_stopped = true, .user_signal = 15};
  facts.ranks.push_back({.ending = Ending{Ending::Kind::exited, 75}});
  report.hosts.push_back({"0 (a)", 0, facts});
  const std::string json = report_json(run_of_train(), report, {});
  EXPECT_TRUE(contains(json, "\"ending\": \"exited with code 75 (stopped on request)\"")) << json;
  report.hosts.front().facts->failed = AttemptFacts::Failed{};
  const std::string failed = report_json(run_of_train(), report, {});
  EXPECT_TRUE(contains(failed, "another rank failed or was lost")) << failed;
}

}  // namespace
}  // namespace strata::launcher
