#include "zero/policy.h"

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "kernels/ops/add_loss.h"

namespace strata::zero {
namespace {

using runtime::Tier;

void check_names(const std::vector<runtime::UnitPlan>& planned,
                 const std::vector<runtime::ParameterUnit>& units) {
  for (std::size_t u = 0; u < std::max(planned.size(), units.size()); ++u) {
    const std::string found = u < planned.size() ? "'" + planned[u].unit + "'" : "missing";
    const std::string expected = u < units.size() ? "'" + units[u].name + "'" : "no such unit";
    if (found != expected)
      throw InvalidArgument("the Plan is for another model: its unit " + std::to_string(u) +
                            " is " + found + ", the model has " + expected +
                            "; make a Plan for this model");
  }
}

void check_tier(const runtime::UnitPlan& plan, const char* kind, runtime::Tier tier,
                std::initializer_list<runtime::Tier> possible) {
  if (std::find(possible.begin(), possible.end(), tier) != possible.end()) return;
  std::string names;
  for (runtime::Tier t : possible) names += (names.empty() ? "" : ", ") + std::string(name_of(t));
  throw InvalidArgument("the Plan puts the " + std::string(kind) + " of unit '" + plan.unit +
                        "' in tier " + std::string(name_of(tier)) + "; it can live in " + names);
}

/// Stages nest: what owns a part of the parameters or gradients updates it.
void check_unit(const runtime::Plan& plan, const runtime::UnitPlan& unit,
                const runtime::ParameterUnit& of) {
  const auto refuse = [&](const std::string& what) {
    throw InvalidArgument("the Plan's unit '" + unit.unit + "' " + what);
  };
  if (plan.data_ranks() > 1 && ((unit.shard_parameter && !unit.shard_gradient) ||
                                (unit.shard_gradient && !unit.shard_optimizer)))
    refuse(
        "is sharded as no stage is: parameters only with gradients, gradients only with "
        "optimizer state");
  const std::int64_t most =
      (of.elements + runtime::kCellElements - 1) / runtime::kCellElements * runtime::kCellElements;
  for (const std::int64_t resident : {unit.optimizer_device_elements, unit.optimizer_host_elements})
    if (resident > most)
      refuse("keeps " + std::to_string(resident) + " elements resident, and has " +
             std::to_string(of.elements));
  if (unit.optimizer_device_elements > 0 && unit.parameter_tier == Tier::disk)
    refuse(
        "has parameters on the disk, which move as a whole, and a part of its optimizer state "
        "resident on the device");
}

/// Whether the operation takes the state is for the operation to say, where updates are made.
void check_recipe(const runtime::Plan& plan, const runtime::UnitPlan& unit) {
  const runtime::UnitRecipe& recipe = unit.recipe;
  const runtime::OptimizerRecipe& optimizer = recipe.optimizer;
  const auto refuse = [&](const std::string& what) {
    throw InvalidArgument("the Plan's unit '" + unit.unit + "' " + what);
  };
  if (recipe.dtype != plan.shape.dtype)
    refuse("has parameters in " + std::string(name_of(recipe.dtype)) + " and activations in " +
           std::string(name_of(plan.shape.dtype)) + " (shape.dtype); both are of one type so far");
  if (!recipe.trainable) return;
  if (optimizer.master == runtime::MasterFormat::packed && recipe.dtype != DType::bf16)
    refuse("has a packed master, which needs bf16 parameters, found " +
           std::string(name_of(recipe.dtype)) + "; set master to fp32");
  if (optimizer.scale_block != 0 && runtime::kCellElements % optimizer.scale_block != 0)
    refuse("has scales of " + std::to_string(optimizer.scale_block) +
           " elements (scale_block), which do not divide " +
           std::to_string(runtime::kCellElements));
}

void check_virtual_ranks(const runtime::Plan& plan) {
  if (plan.virtual_ranks == 0 || plan.virtual_ranks == plan.data_ranks()) return;
  const auto refuse = [&](const std::string& expected) {
    throw InvalidArgument("the Plan has " + std::to_string(plan.virtual_ranks) +
                          " virtual ranks for a world of " + std::to_string(plan.data_ranks()) +
                          "; expected " + expected);
  };
  const auto powers = [](int number) { return std::has_single_bit(static_cast<unsigned>(number)); };
  if (!powers(plan.virtual_ranks) || !powers(plan.data_ranks()) ||
      plan.virtual_ranks < plan.data_ranks() || plan.virtual_ranks > kernels::kMaxLossLeaves)
    refuse("two powers of two up to " + std::to_string(kernels::kMaxLossLeaves) +
           ", the world the smaller one");
  if (plan.order == runtime::MicroStepOrder::by_layer)
    refuse("micro-steps one by one: layer by layer no leaf of the sum is there alone");
  const bool reduces_each = plan.units.empty() || plan.units[0].shard_gradient;
  for (const runtime::UnitPlan& unit : plan.units)
    if (unit.shard_gradient != reduces_each)
      refuse("the gradients of all units sharded or none, found others at unit '" + unit.unit +
             "': they decide in which order the micro-steps run");
}

}  // namespace

std::vector<runtime::UnitPlan> plan_units(const std::vector<runtime::ParameterUnit>& units,
                                          const StagePolicy& policy, int world, int virtual_ranks) {
  if (policy.stage < 0 || policy.stage > kHighestStage)
    throw InvalidArgument("ZeRO stage " + std::to_string(policy.stage) +
                          " does not exist; choose 0, 1, 2 or 3");
  std::vector<runtime::UnitPlan> plans;
  std::int64_t kept = 0;
  for (const runtime::ParameterUnit& unit : units) {
    runtime::UnitPlan plan;
    plan.unit = unit.name;
    if (world == 1) {
      plan.shard_gradient = virtual_ranks > 1 && policy.stage >= 2;
    } else {
      plan.shard_optimizer = policy.stage >= 1;
      plan.shard_gradient = policy.stage >= 2;
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

void check_plan(const runtime::Plan& plan, const std::vector<runtime::ParameterUnit>& units) {
  check_names(plan.units, units);
  for (const runtime::UnitPlan& unit : plan.units) {
    check_tier(unit, "optimizer state", unit.optimizer_tier,
               {Tier::device, Tier::pageable, Tier::disk});
    check_tier(unit, "gradient", unit.gradient_tier, {Tier::device, Tier::pinned, Tier::disk});
    check_tier(unit, "parameter", unit.parameter_tier, {Tier::device, Tier::pinned, Tier::disk});
  }
  for (std::size_t u = 0; u < units.size(); ++u) {
    check_unit(plan, plan.units[u], units[u]);
    check_recipe(plan, plan.units[u]);
  }
  for (const runtime::UnitPlan& unit : plan.units)
    if (unit.parameter_tier == Tier::disk && unit.shard_optimizer && !unit.shard_parameter)
      throw InvalidArgument("the Plan keeps the whole parameters of unit '" + unit.unit +
                            "' on the disk of every rank but updates them in parts; shard the "
                            "parameters, too (ZeRO 3), or keep them in host memory");
  check_virtual_ranks(plan);
  const runtime::GradientTypes& types = plan.gradient;
  if (types.accumulated != DType::f32 && types.accumulated != types.produced)
    throw InvalidArgument("the Plan adds gradients up in " +
                          std::string(name_of(types.accumulated)) + ", expected fp32 or " +
                          std::string(name_of(types.produced)) + ", in which they are produced");
}

}  // namespace strata::zero
