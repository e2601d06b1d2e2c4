#include "train/run/plan_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "train/config/make_plan.h"
#include "train/config/option_fields.h"

namespace strata::train {
namespace {

int stage_of(const runtime::UnitPlan& unit) {
  return unit.shard_parameter ? 3 : unit.shard_gradient ? 2 : unit.shard_optimizer ? 1 : 0;
}

/// The first value of --state-recipe that asks for this optimizer.
std::string recipe_name(const runtime::OptimizerRecipe& optimizer, TrainOptions options) {
  for (const Choice& choice : find_field(option_fields(options), "state_recipe")->words) {
    options.state_recipe = static_cast<StateRecipe>(choice.value);
    if (choices_of(options).recipe.optimizer == optimizer) return std::string(choice.name);
  }
  return optimizer.operation;
}

}  // namespace

std::string zero_stage_text(const runtime::Plan& plan, const TrainOptions& options) {
  if (options.plan.empty()) return std::to_string(options.zero.stage);
  int stage = 0;
  for (const runtime::UnitPlan& unit : plan.units) stage = std::max(stage, stage_of(unit));
  return std::to_string(stage);
}

std::string state_recipe_text(const runtime::Plan& plan, const TrainOptions& options) {
  std::vector<std::pair<std::string, int>> counts;
  int trained = 0;
  for (const runtime::UnitPlan& unit : plan.units) {
    if (!unit.recipe.trainable) continue;
    ++trained;
    const std::string name = recipe_name(unit.recipe.optimizer, options);
    const auto known = std::ranges::find(counts, name, &std::pair<std::string, int>::first);
    if (known == counts.end())
      counts.emplace_back(name, 1);
    else
      ++known->second;
  }
  if (counts.size() == 1) return counts[0].first;
  std::ranges::stable_sort(counts, std::ranges::greater(), &std::pair<std::string, int>::second);
  std::string text;
  for (const auto& [name, count] : counts)
    text += text.empty() ? fmt::format("mixed: {} of {} units {}", count, trained, name)
                         : fmt::format(", {} {}", count, name);
  return text;
}

std::string trained_text(const runtime::Plan& plan) {
  std::string frozen;
  std::size_t trained = plan.units.size();
  for (const runtime::UnitPlan& unit : plan.units) {
    if (unit.recipe.trainable) continue;
    --trained;
    frozen += (frozen.empty() ? "" : ", ") + unit.unit;
  }
  return frozen.empty()
             ? ""
             : fmt::format("{} of {} units, frozen: {}", trained, plan.units.size(), frozen);
}

}  // namespace strata::train
