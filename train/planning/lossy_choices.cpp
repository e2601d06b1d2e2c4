#include "train/planning/lossy_choices.h"

#include <utility>

#include "core/check.h"
#include "train/config/option_fields.h"

namespace strata::train {
namespace {

/// The part by which what changes results must be better.
constexpr double kWorthIt = 0.98;

/// What a strategy asks for: seconds of a step, or bytes.
double cost_of(const plan::PlannedStep& step, plan::Strategy strategy, const MemoryBudget& budget) {
  const bool wants_speed =
      strategy == plan::Strategy::balanced || strategy == plan::Strategy::conservative;
  return wants_speed ? step.forecast.step_seconds
                     : static_cast<double>(plan::scarce_bytes(step.needs, budget.machine));
}

bool is_better(const PlannedRun& lossy, const PlannedRun& best, plan::Strategy strategy,
               const MemoryBudget& budget) {
  if (!lossy.answer.chosen) return false;
  if (!best.answer.chosen) return true;
  const double part = best.lossy ? 1 : kWorthIt;
  return cost_of(*lossy.answer.chosen, strategy, budget) <
         part * cost_of(*best.answer.chosen, strategy, budget);
}

PlannedRun plan_with(const std::string& recipe, ProgramRequest request,
                     const ResolvedConfig& config, const MemoryBudget& budget) {
  std::string unused;
  const std::string wrong = assign(request.options, "state_recipe", {recipe}, unused);
  STRATA_CHECK(wrong.empty(), recipe, wrong);
  PlannedRun planned = plan_options(request, config, budget);
  for (auto* changes : {&planned.changes, &planned.unlimited_changes})
    changes->insert(changes->begin(), {"state_recipe", recipe});
  planned.answer.is_asked = false;
  planned.lossy = LossyChoice{recipe, {}};
  return planned;
}

/// Keeps of two refusals' plans that change results, and that the strategy takes, the one that
/// needs less.
void keep_least(const PlannedRun& lossy, const MemoryBudget& budget, PlannedRun& refused) {
  const std::optional<plan::PlannedStep>& works =
      lossy.answer.accepted ? lossy.answer.accepted : lossy.answer.smallest;
  if (!works) return;
  const auto needs = [&](const LossyChoice& choice) {
    return plan::scarce_bytes(choice.other->needs, budget.machine);
  };
  const LossyChoice choice{lossy.lossy->recipe, works};
  if (!refused.lossy || needs(choice) < needs(*refused.lossy)) refused.lossy = choice;
}

}  // namespace

PlannedRun plan_allowed(const ProgramRequest& request, const ResolvedConfig& config,
                        const MemoryBudget& budget) {
  PlannedRun lossless = plan_options(request, config, budget);
  if (request.options.target.lossy.empty() || lossless.answer.is_asked) return lossless;
  const std::optional<plan::PlannedStep> without =
      lossless.answer.chosen ? lossless.answer.chosen : lossless.answer.fitting;
  PlannedRun best = lossless;
  for (const std::string& recipe : request.options.target.lossy) {
    PlannedRun tried = plan_with(recipe, request, config, budget);
    if (!tried.answer.chosen) keep_least(tried, budget, lossless);
    if (is_better(tried, best, request.options.target.strategy, budget)) best = std::move(tried);
  }
  if (!best.answer.chosen) return lossless;
  if (best.lossy) best.lossy->other = without;
  return best;
}

}  // namespace strata::train
