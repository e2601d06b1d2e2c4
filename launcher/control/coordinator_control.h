// Coordinator of a run and the agent of its own host: they call one another.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "launcher/control/run_control.h"
#include "launcher/control/straggler_watch.h"

namespace strata::launcher {

class CoordinatorControl final : public RunControl {
 public:
  /// `own`: the agent of this host, which must be one of the run's; nullopt: it has no ranks.
  /// `hang_limit`: as HangWatch has it. If `run` has leases, the own agent has them, too: while
  /// this process does not run, no host hears of it, and all ranks end.
  CoordinatorControl(TimePoint now, const std::optional<Hello>& own,
                     const Coordinator::Settings& run, std::chrono::seconds hang_limit);

  std::vector<ControlAction> begin(TimePoint now) override;
  std::vector<ControlAction> connect(TimePoint) override { return {}; }
  std::vector<ControlAction> handle(TimePoint now, const AgentEvent& event) override;
  std::vector<ControlAction> handle(TimePoint now, const CoordinatorEvent& event) override;
  [[nodiscard]] std::optional<TimePoint> next_deadline() const override;
  [[nodiscard]] bool has_had_ranks() const override { return agent_ && agent_->has_had_ranks(); }
  [[nodiscard]] const Coordinator* coordinator() const override { return &coordinator_; }

 private:
  void take(std::vector<AgentAction> actions);
  void take(std::vector<CoordinatorAction> actions);
  std::vector<ControlAction> deliver(TimePoint now);
  void watch(TimePoint now, const Heartbeat& heartbeat);
  void name_straggler(const Straggler& found);

  const std::optional<Hello> own_;
  std::optional<Agent> agent_;
  Coordinator coordinator_;
  HangWatch watch_;
  StragglerWatch stragglers_;
  std::optional<TimePoint> looked_;  ///< when watch_ looked last
  int watched_ = -1;                 ///< attempt whose ranks are watched
  std::deque<AgentMessage> to_coordinator_;
  std::deque<CoordinatorMessage> to_agent_;
  std::vector<ControlAction> actions_;
  bool ended_ = false;
};

}  // namespace strata::launcher
