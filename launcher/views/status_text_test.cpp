#include "launcher/views/status_text.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

JsonValue json(const std::string& text) { return parse_json(text, "test", {}); }

TEST(StatusText, HasARowForEachRun) {
  const JsonValue run = json(R"({"run": "0123", "program": "train", "state": "running",
      "seconds": 7500.2, "restarts_in_hour": 1, "max_restarts": 3, "ranks": [
      {"rank": 0, "step": 12, "loss": 2.25, "tokens_per_second": 1234.5, "committed_step": 10},
      {"rank": 1, "step": 11, "loss": null, "tokens_per_second": null, "committed_step": null}]})");
  EXPECT_EQ(runs_table({run, json(R"({"run": "4567", "state": "no answer", "ranks": []})")}),
            "run   program  state            for  ranks  step    loss  tokens/s  saved step  "
            "restarts in an hour\n"
            "0123  train    running    2 h 5 min      2    12  2.2500      1234          10  "
            "             1 of 3\n"
            "4567  -        no answer          -      -     -       -         -           -  "
            "                  -\n");
}

TEST(StatusText, SaysForWhichHostsARunWaits) {
  const JsonValue run = json(R"({"state": "waiting", "waiting": {"hosts_there": 1,
      "hosts_needed": 2, "hosts_of_run": 3, "missing": "2", "refused": "1", "seconds": 35.5,
      "limit_seconds": 300}, "hosts": [
      {"host": "0", "name": "gpu-0", "address": "10.0.0.1", "slots": 8, "ranks": 0,
       "state": "ready", "why": ""},
      {"host": "1", "name": "gpu-1", "address": "10.0.0.2", "slots": null, "ranks": 0,
       "state": "refused", "why": "it has Strata 1\u001b[2J"}]})");
  EXPECT_EQ(hosts_table(run),
            "waits for hosts for 35 s of 5 min: 1 of 3 there, 2 needed; missing: 2; refused: 1\n"
            "host  name   address   slots  ranks  state    why\n"
            "0     gpu-0  10.0.0.1      8      0  ready    -\n"
            "1     gpu-1  10.0.0.2      -      0  refused  it has Strata 1?[2J\n");
  EXPECT_EQ(hosts_table(json(R"({"hosts": [{"host": "here"}], "waiting": null})")), "");
  EXPECT_EQ(hosts_table(json("{}")), "");
}

TEST(StatusText, TellsFrozenRanksFromStoppedOnes) {
  const JsonValue run = json(R"({"ranks": [{"phase": "update", "held": true, "frozen": true}]})");
  EXPECT_NE(ranks_table(run).find("update (frozen)"), std::string::npos) << ranks_table(run);
}

TEST(StatusText, TellsOnceOfASaveThatRanksCouldNotMake) {
  const JsonValue run = json(R"({"run": "0123", "state": "stopping", "ranks": [
      {"rank": 0, "failed_save": {"step": 12, "seconds": 3.5, "why": "out: no\u001b[2J space"}},
      {"rank": 1, "failed_save": {"step": 12, "seconds": 130, "why": "out: no\u001b[2J space"}},
      {"rank": 2, "failed_save": {"step": 14, "seconds": 1, "why": "gone"}},
      {"rank": 3, "failed_save": null}]})");
  const std::string text =
      "saves have failed for 1 s: the checkpoint of step 14 could not be written: gone\n"
      "saves have failed for 2 min: the checkpoint of step 12 could not be written: out: no?[2J "
      "space\n";
  EXPECT_EQ(save_failures_text(run), text);
  EXPECT_EQ(trouble_text({run}), text);
  const JsonValue other = json(R"({"run": "4567", "state": "no answer", "why": "it is stopped"})");
  EXPECT_EQ(trouble_text({run, other, json(R"({"run": "89", "state": "running"})")}),
            "run 0123:\n" + text + "run 4567:\nno answer: it is stopped\n");
  EXPECT_EQ(trouble_text({json(R"({"ranks": [{"failed_save": 5}]})")}), "");
}

TEST(StatusText, HasARowForEachRank) {
  const JsonValue run = json(R"({"ranks": [
      {"rank": 0, "phase": "backward", "phase_seconds": 0.4, "progress_age_seconds": 7.9, "memory_bytes":
       {"device": 1073741824, "pinned": 0, "pageable": 1024, "disk": 0},
       "checkpoint": "out/step-10", "where": "step 12, backward", "held": true, "ended": false},
      {"rank": 1, "phase": "update", "phase_seconds": 130, "memory_bytes": {"device": 0},
       "checkpoint": "", "where": "", "held": false, "ended": true}]})");
  EXPECT_EQ(
      ranks_table(run),
      "rank  phase                 for   got on  memory                              saved in     "
      "where\n"
      "   0  backward (stopped)    0 s  7 s ago  1.00 GiB device, 1.00 KiB pageable  out/step-10  "
      "step 12, backward\n"
      "   1  ended               2 min        -  -                                   -            "
      "-\n");
  EXPECT_EQ(ranks_table(json("{}")), "");
}

TEST(StatusText, DoesNotLetRanksSteerTheTerminal) {
  const JsonValue run = json(R"({"run": "\u001b[2J", "program": "a\nb", "ranks":
      [{"rank": 0, "where": "\u001b]0;title\u0007", "checkpoint": "\r\u007f"}]})");
  const std::string text = runs_table({run}) + ranks_table(run);
  for (const char byte : text) EXPECT_TRUE(byte == '\n' || byte >= ' ') << int{byte};
  EXPECT_NE(text.find("?[2J"), std::string::npos);
  EXPECT_NE(text.find("a?b"), std::string::npos);
}

TEST(StatusText, SurvivesAnswersOfOtherVersions) {
  const JsonValue run = json(R"({"run": 5, "seconds": "x", "ranks": [{"rank": "a", "held": 1,
      "memory_bytes": [1]}, {"memory_bytes": {"new": "x"}}]})");
  EXPECT_EQ(runs_table({run}).find("-"), runs_table({run}).find('\n') + 1);
  EXPECT_NE(ranks_table(run), "");
  EXPECT_NE(runs_table({json(R"({"ranks": 1})")}), "");
}

TEST(StatusText, RoundsDurationsDown) {
  EXPECT_EQ(duration_text(0.9), "0 s");
  EXPECT_EQ(duration_text(119.9), "119 s");
  EXPECT_EQ(duration_text(120), "2 min");
  EXPECT_EQ(duration_text(7199), "119 min");
  EXPECT_EQ(duration_text(7200), "2 h 0 min");
  EXPECT_EQ(duration_text(48 * 3600 + 3700), "2 d 1 h");
}

}  // namespace
}  // namespace strata::launcher
