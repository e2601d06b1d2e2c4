#include "plan/host_state.h"

#include "runtime/graph/tier.h"

namespace strata::plan {

bool state_exceeds_host_memory(const std::vector<runtime::ParameterUnit>& units,
                               const step::StepSettings& at) {
  using runtime::Tier;
  if (at.plan.host_bytes == runtime::kUnlimited) return false;
  runtime::PersistentLayout state;
  step::declare_state(state, units, at);
  return state.bytes(Tier::pinned) + state.bytes(Tier::pageable) > at.plan.host_bytes;
}

}  // namespace strata::plan
