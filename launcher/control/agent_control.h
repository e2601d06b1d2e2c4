// The agent of a host, in a process of its own: the coordinator is elsewhere.
#pragma once

#include <string>

#include "launcher/control/run_control.h"

namespace strata::launcher {

class AgentControl final : public RunControl {
 public:
  explicit AgentControl(Hello hello) : agent_(std::move(hello), kLease) {}

  std::vector<ControlAction> begin(TimePoint) override { return {}; }
  std::vector<ControlAction> connect(TimePoint now) override;
  std::vector<ControlAction> handle(TimePoint now, const AgentEvent& event) override;
  /// Signals are told to the coordinator; the other events are of no concern here.
  std::vector<ControlAction> handle(TimePoint now, const CoordinatorEvent& event) override;
  [[nodiscard]] std::optional<TimePoint> next_deadline() const override {
    return agent_.next_deadline();
  }
  [[nodiscard]] bool has_had_ranks() const override { return agent_.has_had_ranks(); }
  [[nodiscard]] const Coordinator* coordinator() const override { return nullptr; }

 private:
  static std::vector<ControlAction> to_do(std::vector<AgentAction> actions);

  Agent agent_;
};

}  // namespace strata::launcher
