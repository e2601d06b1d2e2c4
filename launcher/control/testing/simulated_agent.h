// An agent's process on a simulated host: the Agent machine, its timer, its stream and its ranks.
#pragma once

#include <optional>
#include <string>

#include "launcher/control/agent.h"
#include "launcher/control/testing/network.h"
#include "launcher/control/testing/simulated_ranks.h"

namespace strata::launcher::simulation {

class SimulatedAgent : public AgentEnd, public GroupOwner {
 public:
  struct Place {
    int host = 0;
    std::string agent;  ///< its id
    int slots = 1;
    std::optional<std::chrono::milliseconds> lease;
  };
  /// Borrows all but `place`.
  SimulatedAgent(Place place, SimulatedHost& host, Draws& draws, Trace& trace, Network& network,
                 SimulatedRanks& ranks);

  /// Connects to the coordinator, again and again until it can.
  void connect();
  /// The process dies, and its ranks with it (PDEATHSIG).
  void crash();
  /// So does the whole host.
  void crash_with_host();
  /// The process gets a signal.
  void signal(int number);

  [[nodiscard]] bool lives() const { return lives_; }
  [[nodiscard]] int host() const { return place_.host; }
  [[nodiscard]] std::optional<int> stream() const { return stream_; }

  void hear(int coordinator, const CoordinatorMessage& message) override;
  void stream_broke(int stream) override;
  void rank_failed(const RankFailed& failed) override;
  void group_ended(const AttemptFacts& facts) override;
  void rank_asks(const ValueRequest& request) override;

 private:
  void handle(const AgentEvent& event);
  void obey(const std::vector<AgentAction>& actions);
  void act(const SendToCoordinator& action);
  void act(const StartGroup& action);
  void act(const EndGroup& action);
  void act(const SignalGroup& action);
  void act(const KillGroup& action);
  void act(const SetLease& action);
  void act(const AnswerRank& action);
  void act(const DescribeHang&) {}  // simulated ranks tell nothing
  void act(const Announce&) {}
  void act(const EndAgent& action);
  void set_timer();
  void die(bool with_host);

  const Place place_;
  SimulatedHost& host_;
  Draws& draws_;
  Trace& trace_;
  Network& network_;
  SimulatedRanks& ranks_;
  Agent agent_;
  bool lives_ = true;
  std::optional<int> stream_;
  Group* group_ = nullptr;
  int coordinator_ = 0;  ///< that was heard last
  int tries_ = 0;
  int timers_ = 0;  ///< that were set; only the last one counts
};

}  // namespace strata::launcher::simulation
