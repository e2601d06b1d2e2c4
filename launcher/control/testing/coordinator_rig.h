// A coordinator that a test tells what happens, and what it did then.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/control/coordinator.h"

namespace strata::launcher {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Facts of a host with one rank, which a signal killed after a checkpoint of `committed` steps.
inline AttemptFacts killed(int rank, std::int64_t step, std::int64_t committed) {
  AttemptFacts facts;
  facts.exit_code = 137;
  facts.failed = AttemptFacts::Failed{rank, "", ""};
  facts.ranks = {{.ending = Ending{Ending::Kind::killed, SIGKILL}, .step = step}};
  facts.committed = committed;
  facts.checkpoint = "out/step";
  return facts;
}
/// Facts of a host whose rank ended because of a peer.
inline AttemptFacts blames_a_peer(std::int64_t committed) {
  AttemptFacts facts = killed(0, 0, committed);
  facts.exit_code = 75;
  facts.ranks[0].ending = Ending{Ending::Kind::exited, 75};
  return facts;
}
inline AttemptFacts well_done() {
  AttemptFacts facts;
  facts.was_asked = true;
  facts.ranks.resize(1);
  return facts;
}

class CoordinatorTest : public testing::Test {
 protected:
  void open(std::vector<std::string> hosts, int least = 0) {
    Coordinator::Settings settings;
    settings.least_hosts = least == 0 ? static_cast<int>(hosts.size()) : least;
    settings.hosts = hosts;
    settings.lease = milliseconds(5000);
    run_ = std::make_unique<Coordinator>(now_, settings);
    for (const std::string& host : hosts) hello(host);
  }
  void hello(const std::string& host, const std::string& agent = "1", int newest = -1) {
    tell(AgentSaid{
        host, agent,
        Hello{.host = host, .agent = agent, .newest = newest, .has_had_ranks = newest >= 0}});
  }
  void beat(const std::string& host, int newest, bool has_ranks, const std::string& agent = "1") {
    tell(AgentSaid{host, agent,
                   Heartbeat{.number = beats_++, .newest = newest, .has_ranks = has_ranks}});
  }
  void ended(const std::string& host, AttemptFacts facts) {
    tell(AgentSaid{host, "1", AttemptEnded{run_->attempt(), std::move(facts)}});
  }
  void tell(CoordinatorEvent event) {
    for (CoordinatorAction& action : run_->handle(now_, event)) actions_.push_back(action);
  }
  void tick_after(milliseconds time) {
    now_ += time;
    tell(CoordinatorTick{});
  }
  /// Opens a run of a and b, which have ranks; then `time` passes, after which a alone has spoken.
  void open_with_silent_b(milliseconds time) {
    open({"a", "b"});
    beat("a", 0, true);
    beat("b", 0, true);
    now_ += time;
    beat("a", 0, true);
  }
  /// Returns the last message of a kind that was sent to the host, and forgets all.
  template <typename Message>
  std::optional<Message> sent(const std::string& host) {
    std::optional<Message> last;
    for (const CoordinatorAction& action : actions_)
      if (const auto* send = std::get_if<SendToAgent>(&action); send && send->host == host)
        if (const auto* message = std::get_if<Message>(&send->message)) last = *message;
    return last;
  }
  template <typename Action>
  std::optional<Action> done() {
    std::optional<Action> last;
    for (const CoordinatorAction& action : actions_)
      if (const auto* found = std::get_if<Action>(&action)) last = *found;
    return last;
  }
  void forget() { actions_.clear(); }

  std::int64_t beats_ = 0;
  Coordinator::TimePoint now_{};
  std::unique_ptr<Coordinator> run_;
  std::vector<CoordinatorAction> actions_;
};

}  // namespace strata::launcher
