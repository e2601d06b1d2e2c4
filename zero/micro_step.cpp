#include "zero/micro_step.h"

#include <fmt/core.h>
#include <algorithm>
#include <bit>

namespace strata::zero {
namespace {

/// Makes the kind of leaf `leaf` in round `round`, both counted from 0.
MicroStepKind position_of(int round, int rounds, int leaf, int leaves, bool reduces_each) {
  MicroStepKind p;
  p.begins_step = round == 0 && leaf == 0;
  p.ends_step = round + 1 == rounds && leaf + 1 == leaves;
  p.opens_sum = round == 0;
  p.closes_sum = round + 1 == rounds;
  if (leaves == 1 || (!reduces_each && !p.closes_sum)) return p;
  p.joins = std::countr_one(static_cast<unsigned>(leaf));
  p.completes = leaf + 1 == leaves;
  // A leaf that waits as a partial sum has not reached the accumulator.
  if (reduces_each && !p.completes) p.opens_sum = p.closes_sum = true;
  return p;
}

}  // namespace

std::string name_of(const MicroStepKind& p) {
  std::string name =
      p.begins_step ? (p.ends_step ? "only" : "first") : (p.ends_step ? "last" : "middle");
  if (p.opens_sum && !p.begins_step) name += "_opens";
  if (!p.completes)
    name += fmt::format("_leaf{}", p.joins);
  else if (p.joins > 0)
    name += fmt::format("_root{}", p.joins);
  return name;
}

std::vector<MicroStep> micro_steps(const runtime::Plan& plan) {
  if (plan.order == runtime::MicroStepOrder::by_layer) return {{MicroStepKind::only, 0}};
  const int rounds = plan.micro_steps, leaves = plan.leaves_per_rank();
  const bool reduces_each = std::ranges::any_of(
      plan.units, [](const runtime::UnitPlan& unit) { return unit.shard_gradient; });
  std::vector<MicroStep> steps;
  for (int i = 0; i < rounds * leaves; ++i) {
    const int round = reduces_each ? i / leaves : i % rounds;
    const int leaf = reduces_each ? i % leaves : i / rounds;
    steps.push_back(
        {position_of(round, rounds, leaf, leaves, reduces_each), round * leaves + leaf});
  }
  return steps;
}

int runs_per_step(const runtime::Plan& plan, const MicroStepKind& kind) {
  const std::vector<MicroStep> steps = micro_steps(plan);
  return static_cast<int>(std::ranges::count(steps, kind, &MicroStep::kind));
}

}  // namespace strata::zero
