#include "zero/policy.h"

#include <fmt/core.h>
#include <string>
#include <utility>

#include "core/error.h"

namespace strata::zero {

bool shards_gradients(const StagePolicy& policy) { return policy.stage >= 2; }

std::vector<runtime::UnitPlan> plan_units(const std::vector<runtime::ParameterUnit>& units,
                                          const StagePolicy& policy, int data_ranks,
                                          int virtual_ranks) {
  if (policy.stage < 0 || policy.stage > kHighestStage)
    throw InvalidArgument(
        fmt::format("ZeRO stage {} does not exist; choose 0, 1, 2 or 3", policy.stage));
  std::vector<runtime::UnitPlan> plans;
  std::int64_t kept = 0;
  for (const runtime::ParameterUnit& unit : units) {
    runtime::UnitPlan plan;
    plan.unit = unit.name;
    plan.elements = unit.elements;
    if (data_ranks == 1) {
      plan.shard_gradient = virtual_ranks > 1 && shards_gradients(policy);
    } else {
      plan.shard_optimizer = policy.stage >= 1;
      plan.shard_gradient = shards_gradients(policy);
      plan.shard_parameter = policy.stage >= 3;
      const bool keep = unit.elements <= policy.persistence_threshold_elements &&
                        kept + unit.elements <= policy.model_persistence_threshold_elements;
      if (plan.shard_parameter && keep) {
        plan.shard_parameter = false;
        kept += unit.elements;
      }
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace strata::zero
