// What one process of mlaunch is to do for a run, as a function of events and their times: as its
// coordinator and the agent of its own host (coordinator_control.h), or as the agent of another
// host (agent_control.h).
#pragma once

#include <chrono>
#include <optional>
#include <variant>
#include <vector>

#include "launcher/control/agent.h"
#include "launcher/control/coordinator.h"

namespace strata::launcher {

/// What is left to do, in the given order. The messages go to other hosts.
using ControlAction =
    std::variant<StartGroup, EndGroup, SignalGroup, KillGroup, SetLease, AnswerRank, DescribeHang,
                 TellReport, Announce, KeepEvidence, EndRun, SendToAgent, SendToCoordinator>;

class RunControl {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  RunControl() = default;
  RunControl(const RunControl&) = delete;
  RunControl& operator=(const RunControl&) = delete;
  virtual ~RunControl() = default;

  /// The first actions.
  virtual std::vector<ControlAction> begin(TimePoint now) = 0;
  /// A connection to the coordinator stands, perhaps after another one broke.
  virtual std::vector<ControlAction> connect(TimePoint now) = 0;
  /// Times of events must not decrease. Do not call it after EndRun.
  virtual std::vector<ControlAction> handle(TimePoint now, const AgentEvent& event) = 0;
  virtual std::vector<ControlAction> handle(TimePoint now, const CoordinatorEvent& event) = 0;
  [[nodiscard]] virtual std::optional<TimePoint> next_deadline() const = 0;

  /// True once ranks of the run have started on this host.
  [[nodiscard]] virtual bool has_had_ranks() const = 0;
  /// The coordinator of the run; null in the process of an agent alone.
  [[nodiscard]] virtual const Coordinator* coordinator() const = 0;
};

}  // namespace strata::launcher
