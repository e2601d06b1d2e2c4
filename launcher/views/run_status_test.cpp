#include "launcher/views/run_status.h"

#include <gtest/gtest.h>

#include "core/json.h"

namespace strata::launcher {
namespace {

RunStatus some_status() {
  RunStatus status;
  status.run_id = "0123456789abcdef";
  status.program = "train \"quoted\"";
  status.host = "here";
  status.process = 4711;
  status.started_at = std::chrono::system_clock::time_point(std::chrono::seconds(1'795'000'000));
  status.seconds = 12.5;
  status.attempt = 2;
  status.restarts = 1;
  status.most_restarts = 3;
  status.grace_seconds = 30;
  return status;
}

TEST(RunStatus, IsStrictJson) {
  RunStatus status = some_status();
  RankState state{.rank = 0, .phase = Phase::backward, .step = 12, .collective = 18};
  state.collective_name = "reduce_scatter\x1b[31m layer4\xff";
  state.where = "step 12, backward";
  state.committed = 10;
  state.checkpoint = "out/step-10";
  state.held = true;
  state.view.loss = 2.25;
  state.view.tokens_per_second = 1000;
  state.view.phase_seconds = 0.5;
  state.view.tier_bytes = {1, 2, 3, 4};
  state.view.save_failure = SaveFailure{12, 3.5, "no space"};
  status.ranks = {{"there", state}};
  const std::string text = status_json(status);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const JsonValue json = parse_json(text, "status", {});
  EXPECT_EQ(json.at("version").as_integer(), 1);
  EXPECT_EQ(json.at("run").as_string(), "0123456789abcdef");
  EXPECT_EQ(json.at("program").as_string(), "train \"quoted\"");
  EXPECT_EQ(json.at("state").as_string(), "running");
  EXPECT_EQ(json.at("process").as_integer(), 4711);
  EXPECT_EQ(json.at("started_at").as_string(), "2026-11-18T11:06:40Z");
  EXPECT_EQ(json.at("attempt").as_integer(), 2);
  EXPECT_EQ(json.at("restarts_in_hour").as_integer(), 1);
  EXPECT_EQ(json.at("max_restarts").as_integer(), 3);
  const JsonValue rank = json.at("ranks").elements().at(0);
  EXPECT_EQ(rank.at("host").as_string(), "there");
  EXPECT_EQ(rank.at("phase").as_string(), "backward");
  EXPECT_EQ(rank.at("phase_seconds").as_number(), 0.5);
  EXPECT_EQ(rank.at("step").as_integer(), 12);
  EXPECT_EQ(rank.at("collective").as_integer(), 18);
  EXPECT_EQ(rank.at("collective_name").as_string(), "reduce_scatter\x1b[31m layer4\xef\xbf\xbd");
  EXPECT_EQ(rank.at("loss").as_number(), 2.25);
  EXPECT_EQ(rank.at("tokens_per_second").as_number(), 1000);
  EXPECT_EQ(rank.at("memory_bytes").at("device").as_integer(), 1);
  EXPECT_EQ(rank.at("memory_bytes").at("disk").as_integer(), 4);
  EXPECT_EQ(rank.at("committed_step").as_integer(), 10);
  EXPECT_EQ(rank.at("checkpoint").as_string(), "out/step-10");
  EXPECT_EQ(rank.at("failed_save").at("step").as_integer(), 12);
  EXPECT_EQ(rank.at("failed_save").at("seconds").as_number(), 3.5);
  EXPECT_EQ(rank.at("failed_save").at("why").as_string(), "no space");
  EXPECT_TRUE(rank.at("held").as_boolean());
  EXPECT_FALSE(rank.at("ended").as_boolean());
}

TEST(RunStatus, TellsOfHostsAndWhatItWaitsFor) {
  RunStatus status = some_status();
  status.all_restarts = 5;
  status.regroupings = 2;
  status.waiting = WaitingView{.there = 1,
                               .needed = 2,
                               .all = 3,
                               .since = std::chrono::milliseconds(1500),
                               .limit = std::chrono::seconds(300),
                               .missing = "1",
                               .refused = "2"};
  status.hosts = {{"0", "gpu-0", "10.0.0.1", 8, 0, kIsReady},
                  {"1", "gpu-1", "10.0.0.2", 0, 0, kIsRefused, "it has Strata 1"}};
  JsonValue json = parse_json(status_json(status), "status", {});
  EXPECT_EQ(json.at("state").as_string(), "waiting");
  EXPECT_EQ(json.at("restarts").as_integer(), 5);
  EXPECT_EQ(json.at("regroupings").as_integer(), 2);
  const JsonValue waiting = json.at("waiting");
  EXPECT_EQ(waiting.at("hosts_there").as_integer(), 1);
  EXPECT_EQ(waiting.at("hosts_needed").as_integer(), 2);
  EXPECT_EQ(waiting.at("hosts_of_run").as_integer(), 3);
  EXPECT_EQ(waiting.at("seconds").as_number(), 1.5);
  EXPECT_EQ(waiting.at("limit_seconds").as_number(), 300);
  EXPECT_EQ(waiting.at("missing").as_string(), "1");
  EXPECT_EQ(waiting.at("refused").as_string(), "2");
  const auto hosts = json.at("hosts").elements();
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_EQ(hosts[0].at("name").as_string(), "gpu-0");
  EXPECT_EQ(hosts[0].at("slots").as_integer(), 8);
  EXPECT_EQ(hosts[0].at("state").as_string(), "ready");
  EXPECT_TRUE(hosts[1].at("slots").is(JsonKind::null));
  EXPECT_EQ(hosts[1].at("why").as_string(), "it has Strata 1");
  status.stopping = true;
  EXPECT_EQ(parse_json(status_json(status), "status", {}).at("state").as_string(), "stopping");
  status.stopping = false;
  status.waiting.reset();
  json = parse_json(status_json(status), "status", {});
  EXPECT_EQ(json.at("state").as_string(), "running");
  EXPECT_TRUE(json.at("waiting").is(JsonKind::null));
}

TEST(RunStatus, SaysNullOfWhatIsNotKnown) {
  RunStatus status = some_status();
  status.attempt = -1;
  status.stopping = true;
  status.ranks.resize(1);
  const JsonValue json = parse_json(status_json(status), "status", {});
  EXPECT_EQ(json.at("state").as_string(), "stopping");
  EXPECT_TRUE(json.at("attempt").is(JsonKind::null));
  const JsonValue rank = json.at("ranks").elements().at(0);
  for (const char* name : {"step", "loss", "tokens_per_second", "committed_step", "failed_save"})
    EXPECT_TRUE(rank.at(name).is(JsonKind::null)) << name;
}

TEST(RunStatus, TellsOfItsEndAndOfWhatIsKnownIfNobodyTellsOfIt) {
  RunStatus status = some_status();
  status.committed = 40;
  status.checkpoint = "out/step-40";
  status.log_folder = "/logs";
  const std::chrono::system_clock::time_point time(std::chrono::seconds(1'795'000'060));
  const JsonValue end = parse_json(
      ended_json(status, {.exit_code = 75, .ended_at = time, .killed = {{1, 3}, true}}), "end", {});
  EXPECT_EQ(end.at("state").as_string(), "ended");
  EXPECT_EQ(end.at("killed").elements().at(1).as_integer(), 3);
  EXPECT_TRUE(end.at("killed_on_request").as_boolean());
  EXPECT_TRUE(end.at("committed_step").is(JsonKind::null));
  const JsonValue record = parse_json(record_json(status, time), "record", {});
  EXPECT_EQ(record.at("state").as_string(), "killed");
  EXPECT_EQ(record.at("seen_at").as_string(), "2026-11-18T11:07:40Z");
  EXPECT_EQ(record.at("process").as_integer(), 4711);
  EXPECT_FALSE(record.find("process_start").has_value());
  EXPECT_EQ(record.at("committed_step").as_integer(), 40);
  EXPECT_EQ(record.at("checkpoint").as_string(), "out/step-40");
  EXPECT_EQ(record.at("log_folder").as_string(), "/logs");
  EXPECT_FALSE(record.find("exit_code").has_value());
  status.process_start = 123;
  EXPECT_EQ(parse_json(record_json(status, time), "record", {}).at("process_start").as_integer(),
            123);
}

TEST(RunStatus, TellsOfAStopWhichRanksAreHeld) {
  std::vector<RankState> ranks(2);
  ranks[1] = {.rank = 1, .held = true, .view = {.process = 4711}};
  const std::string line =
      stop_json({"0123", true, std::chrono::seconds(30), std::chrono::seconds(5), ranks});
  EXPECT_EQ(line, R"({"run":"0123","was_asked":true,"grace_seconds":30,"held_limit_seconds":5,)"
                  R"("held":[{"rank":1,"process":4711,"frozen":false}]})");
}

}  // namespace
}  // namespace strata::launcher
