// A coordinator of hosts that may come and go, which a test tells what happens.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launcher/control/testing/coordinator_rig.h"

namespace strata::launcher {

/// Runs of hosts with two ranks each, of which one suffices.
class ElasticTest : public CoordinatorTest {
 protected:
  void open_elastic(const std::vector<std::string>& there) {
    Coordinator::Settings settings{.hosts = {"a", "b", "c"}, .least_hosts = 1, .restarts = {}};
    settings.lease = milliseconds(5000);
    settings.secret_file = "keys/run";
    settings.join = seconds(300);
    run_ = std::make_unique<Coordinator>(now_, settings);
    for (const std::string& host : there) come(host);
  }
  void come(const std::string& host, const std::string& agent = "1") {
    tell(AgentSaid{host, agent, Hello{.host = host, .agent = agent, .slots = 2}});
  }
  void say_worlds(const std::string& host, const std::string& numbers) {
    const ValueRequest request{.id = 7, .is_put = true, .key = "r/0/run/worlds", .value = numbers};
    tell(AgentSaid{host, "1", StoreRequest{run_->attempt(), request}});
  }
  void commit(const std::string& host, std::int64_t step) {
    RankState rank;
    rank.committed = step;
    rank.checkpoint = "out/step";
    tell(AgentSaid{host, "1",
                   Heartbeat{.newest = run_->attempt(), .has_ranks = true, .ranks = {rank}}});
  }
  /// Lets time pass in which these hosts, which have no ranks, answer.
  void pass(seconds time, const std::vector<std::string>& hosts) {
    for (; time > seconds(0); time -= seconds(1)) {
      tick_after(seconds(1));
      for (const std::string& host : hosts) beat(host, -1, false);
    }
  }
  /// Lets the run begin on a alone, once the time of the others to come has passed.
  void begin_on_a(const std::string& worlds) {
    open_elastic({"a"});
    pass(seconds(15), {"a"});
    say_worlds("a", worlds);
  }
  /// Lets b come to a run of a, whose ranks are told to save and stop after a checkpoint.
  void begin_to_grow() {
    begin_on_a("2 4");
    come("b");
    commit("a", 10);
    ASSERT_TRUE(sent<ForwardSignal>("a"));
  }
  std::vector<int> started(const std::string& host) {
    const auto start = sent<StartAttempt>(host);
    forget();
    return start ? start->placement.slots : std::vector<int>();
  }
  static AttemptFacts stopped(int ranks) {
    AttemptFacts facts;
    facts.exit_code = 75;
    facts.was_asked = facts.all_stopped = true;
    facts.ranks.resize(static_cast<std::size_t>(ranks));
    return facts;
  }
};

}  // namespace strata::launcher
