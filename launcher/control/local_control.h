// Coordinator and agent of a run whose ranks are all on this host: they call one another.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/control/agent.h"
#include "launcher/control/coordinator.h"
#include "launcher/control/hang_watch.h"

namespace strata::launcher {

/// Ranks hang: say so, and keep evidence, before they are ended.
struct TellHang {
  Hang hang;
};

/// What is left to do for the process that holds both.
using LocalAction = std::variant<StartGroup, EndGroup, SignalGroup, KillGroup, TellHang, TellReport,
                                 Announce, KeepEvidence, EndRun>;

class LocalControl {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `host`: its name in reports. `hang_limit`: as HangWatch has it.
  LocalControl(TimePoint now, const std::string& host, int ranks, RestartPolicy::Limits restarts,
               std::chrono::seconds hang_limit);

  /// The first actions: they start the ranks.
  std::vector<LocalAction> begin(TimePoint now);
  /// Times of events must not decrease. Do not call it after EndRun.
  std::vector<LocalAction> handle(TimePoint now, const AgentEvent& event);
  std::vector<LocalAction> handle(TimePoint now, const CoordinatorEvent& event);
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  [[nodiscard]] const Coordinator& coordinator() const { return coordinator_; }

 private:
  void take(std::vector<AgentAction> actions);
  void take(std::vector<CoordinatorAction> actions);
  std::vector<LocalAction> deliver(TimePoint now);
  void watch(TimePoint now, const Heartbeat& heartbeat);

  const std::string host_;
  Agent agent_;
  Coordinator coordinator_;
  HangWatch watch_;
  int watched_ = -1;  ///< attempt whose ranks are watched
  std::deque<AgentMessage> to_coordinator_;
  std::deque<CoordinatorMessage> to_agent_;
  std::vector<LocalAction> actions_;
  bool ended_ = false;
};

}  // namespace strata::launcher
