#include "zero/rank_plan.h"

#include "runtime/graph/persistent_values.h"
#include "runtime/graph/state_names.h"
#include "zero/partition.h"

namespace strata::zero {

using kernels::Shape;
using runtime::Graph;
using runtime::Role;
using runtime::ValueId;

OwnedUnit owned_unit(const runtime::ParameterUnit& unit, const runtime::UnitPlan& plan,
                     const RankPlan& of) {
  const ElementRange shard = shard_of(unit.elements, of.plan.data_ranks(), of.data_rank());
  OwnedUnit owned;
  owned.owned_begin = shard.begin;
  owned.owned_end = shard.end;
  owned.optimizer_begin = plan.shard_optimizer ? owned.owned_begin : 0;
  owned.optimizer_end = plan.shard_optimizer ? owned.owned_end : unit.elements;
  return owned;
}

runtime::Distribution held_by_owners(const runtime::UnitPlan& plan) {
  return runtime::over_data(plan.shard_optimizer ? kernels::sharded(0) : kernels::kReplicated);
}

std::string parameter_storage(const runtime::UnitPlan& plan) {
  return plan.shard_parameter ? runtime::parameter_shard_name(plan.unit)
                              : runtime::parameter_name(plan.unit);
}

ValueId kept_parameters(Graph& graph, std::size_t unit, const RankPlan& of) {
  const runtime::UnitPlan& plan = of.plan.units[unit];
  const OwnedUnit owned = owned_unit(graph.units[unit], plan, of);
  const std::int64_t kept =
      plan.shard_parameter ? owned.owned_end - owned.owned_begin : graph.units[unit].elements;
  const ValueId root =
      runtime::persistent_root(graph, parameter_storage(plan), {plan.recipe.dtype, Shape{kept}},
                               Role::parameter, plan.parameter_tier);
  if (plan.shard_parameter)
    graph.values[root].distribution = runtime::over_data(kernels::sharded(0));
  return root;
}

}  // namespace strata::zero
