#include "launcher/control/agent_control.h"

#include <type_traits>
#include <utility>

namespace strata::launcher {

std::vector<ControlAction> AgentControl::to_do(std::vector<AgentAction> actions) {
  std::vector<ControlAction> to_do;
  for (AgentAction& action : actions)
    std::visit(
        [&to_do](auto& one) {
          if constexpr (std::is_same_v<decltype(one), EndAgent&>) {
            if (!one.dismiss.reason.empty()) to_do.emplace_back(Announce{one.dismiss.reason});
            to_do.emplace_back(EndRun{one.dismiss.exit_code});
          } else {
            to_do.emplace_back(std::move(one));
          }
        },
        action);
  return to_do;
}

std::vector<ControlAction> AgentControl::connect(TimePoint now) {
  return to_do(agent_.connect(now));
}

std::vector<ControlAction> AgentControl::handle(TimePoint now, const AgentEvent& event) {
  return to_do(agent_.handle(now, event));
}

std::vector<ControlAction> AgentControl::handle(TimePoint now, const CoordinatorEvent& event) {
  const auto* signal = std::get_if<RunSignal>(&event);
  return signal == nullptr ? std::vector<ControlAction>{}
                           : handle(now, AgentEvent(AgentSignal{signal->number}));
}

}  // namespace strata::launcher
