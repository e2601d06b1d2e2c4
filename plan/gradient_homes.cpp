#include "plan/gradient_homes.h"

namespace strata::plan {

std::optional<runtime::Plan> with_gradients_on_disk(runtime::Plan plan) {
  bool moved = false;
  for (runtime::UnitPlan& unit : plan.units) {
    if (unit.gradient_tier != runtime::Tier::pinned ||
        (unit.optimizer_tier != runtime::Tier::disk && unit.parameter_tier != runtime::Tier::disk))
      continue;
    unit.gradient_tier = runtime::Tier::disk;
    moved = true;
  }
  if (!moved) return {};
  return plan;
}

}  // namespace strata::plan
