#include "launcher/views/metrics_text.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace strata::launcher {
namespace {

bool has(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != std::string::npos;
}

TEST(MetricsText, TellsWhatIsKnown) {
  RunStatus status{.run_id = "0123", .seconds = 100.5, .attempt = 7};
  status.all_restarts = 2;
  status.regroupings = 4;
  status.waiting.emplace();
  status.hosts = {{.number = "0", .state = kHasRanks}, {.number = "1", .state = kIsLost}};
  status.lost_steps = 7;
  status.goodput = 0.75;
  status.committed = 10;
  status.checkpoint_age = 12;
  RankState rank{.rank = 0, .phase = Phase::backward, .step = 12};
  rank.view.loss = 2.25;
  rank.view.save_failure = SaveFailure{12, 3.5, "no space"};
  rank.view.tokens_per_second = 1000;
  status.ranks = {{"a\"b", rank}, {"c", {.rank = 1, .phase = Phase::backward, .held = true}}};
  const std::string text = metrics_text(status);
  for (const char* line : {"strata_run_seconds{run=\"0123\"} 100.5",
                           "strata_step{run=\"0123\"} 12",
                           "strata_loss{run=\"0123\"} 2.25",
                           "strata_tokens_per_second{run=\"0123\"} 1000",
                           "strata_restarts_total{run=\"0123\"} 2",
                           "strata_lost_steps_total{run=\"0123\"} 7",
                           "strata_regroupings_total{run=\"0123\"} 4",
                           "strata_waiting{run=\"0123\"} 1",
                           "strata_hosts{run=\"0123\",state=\"ranks\"} 1",
                           "strata_hosts{run=\"0123\",state=\"lost\"} 1",
                           "strata_hosts{run=\"0123\",state=\"left out\"} 0",
                           "strata_goodput_ratio{run=\"0123\"} 0.75",
                           "strata_checkpoint_step{run=\"0123\"} 10",
                           "strata_checkpoint_age_seconds{run=\"0123\"} 12",
                           "strata_saves_fail_seconds{run=\"0123\"} 3.5",
                           "strata_up{run=\"0123\"} 1",
                           "strata_ranks{run=\"0123\",phase=\"backward\"} 1",
                           "strata_ranks{run=\"0123\",phase=\"held\"} 1",
                           "strata_rank_step{run=\"0123\",rank=\"0\",host=\"a\\\"b\"} 12",
                           "strata_rank_step{run=\"0123\",rank=\"1\",host=\"c\"} -1",
                           "# TYPE strata_lost_steps_total counter",
                           "# TYPE strata_loss gauge"})
    EXPECT_TRUE(has(text, line)) << line << "\n" << text;
  EXPECT_TRUE(text.ends_with("\n"));
}

TEST(MetricsText, LeavesOutWhatIsNot) {
  const std::string text = metrics_text({.run_id = "0123"});
  for (const char* name : {"strata_loss", "strata_step{", "strata_tokens", "strata_goodput",
                           "strata_checkpoint", "strata_rank_step", "nan", "inf"})
    EXPECT_EQ(text.find(name), std::string::npos) << name << "\n" << text;
  EXPECT_TRUE(has(text, "strata_restarts_total{run=\"0123\"} 0"));
  EXPECT_TRUE(has(metrics_text({.run_id = "0123", .ranks = {{"here", {}}}}),
                  "strata_saves_fail_seconds{run=\"0123\"} 0"));
}

TEST(MetricsText, EachLineFollowsItsDescription) {
  std::istringstream lines(metrics_text({.run_id = "a\\b\nc"}));
  std::set<std::string> described;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) described.insert(line.substr(7, line.find(' ', 7) - 7));
    if (line.starts_with("#")) continue;
    EXPECT_TRUE(described.contains(line.substr(0, line.find('{')))) << line;
    EXPECT_NE(line.find("run=\"a\\\\b\\nc\""), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace strata::launcher
