// Gives each saved value of each layer an action of its own in a step that was found.
#include <algorithm>
#include <utility>

#include "plan/budget_entry.h"
#include "plan/widest_seat.h"

namespace strata::plan {
namespace {

/// Parts of a step: the solver is asked only where keeping everything would save this much, and its
/// answer is taken if it saves that much.
constexpr double kLeastHope = 0.03;
constexpr double kLeastGain = 0.005;
constexpr std::int64_t kMostHostBytes = std::int64_t{1} << 48;  ///< as chains count

}  // namespace

std::optional<SavedAnswer> BudgetSearch::solved(const PlannedStep& step, const Choices& kept) {
  SavedProblem problem{search_.model, step.plan, search_.machine, widest_seat(search_.where)};
  problem.device_bytes = step.plan.budget_bytes[static_cast<std::size_t>(runtime::Tier::device)];
  if (!own_device_ && problem.device_bytes == runtime::kUnlimited)
    problem.device_bytes = step.limits.host_bytes - step.needs.host;
  problem.may_leave = own_device_ && free_.activations && free_.farthest != Home::device;
  problem.thorough = false;
  problem.may_use_disk = free_.farthest == Home::disk;
  const std::int64_t others = estimates_->guess(kept).needs.host;
  if (problem.may_leave)
    problem.host_bytes =
        std::clamp<std::int64_t>(step.limits.host_bytes - others, 0, kMostHostBytes);
  return solve_saved(problem, &compiled_);
}

/// A home that was asked for stays, and actions cannot say both.
bool BudgetSearch::may_get_actions(const Choices& choices) const {
  const bool saves_memory = again_part_of(choices) > 0 || choices.activations != Home::device;
  return saves_memory && free_.saved && choices.actions.empty() &&
         (free_.activations || choices.activations == Home::device);
}

/// Returns `step` with actions in place of `kept`, which keeps all; nullopt unless it costs at most
/// `enough`.
std::optional<PlannedStep> BudgetSearch::with_solved(const PlannedStep& step, Choices kept,
                                                     double enough) {
  const std::optional<SavedAnswer> answer = solved(step, kept);
  if (!answer || price_of(kept, answer->step_seconds) > enough) return {};
  kept.actions = runtime::without_kept(answer->saved);
  std::optional<PlannedStep> found = attempted(kept, step.limits, answer->step_seconds);
  if (found && price_of(*found) > enough) found.reset();
  return found;
}

WithActions BudgetSearch::with_actions(const std::vector<PlannedStep>& steps) {
  const PlannedStep& fastest = steps.front();
  const PlannedStep* hopeful = nullptr;
  Choices kept;
  double price = price_of(fastest) * (1 - kLeastGain);  // if the step lost nothing to memory
  for (const PlannedStep& step : steps) {
    if (!may_get_actions(step.choices)) continue;
    Choices all_kept = step.choices;
    set_again_part(all_kept, 0);
    all_kept.activations = Home::device;
    // Whatever memory it would need: where a link or host memory is busiest with state, keeping all
    // is no faster.
    const double part =
        estimates_->guess(all_kept).seconds / estimates_->guess(step.choices).seconds;
    if (part > 1 - kLeastHope || price_of(step) * part >= price) continue;
    price = price_of(step) * part;
    hopeful = &step;
    kept = std::move(all_kept);
  }
  if (hopeful == nullptr || !may_work()) return {fastest, fastest};
  auto found = with_solved(*hopeful, std::move(kept), price_of(fastest) * (1 - kLeastGain));
  return found ? WithActions{*hopeful, std::move(*found)} : WithActions{fastest, fastest};
}

}  // namespace strata::plan
