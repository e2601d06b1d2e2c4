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

/// True if a step that keeps all saved values on the device is guessed to be notably faster,
/// whatever memory it needs: where a link or host memory is busiest with state, none is.
bool BudgetSearch::may_gain(const Choices& now, const Choices& kept) {
  return estimates_.guess(kept).seconds <= estimates_.guess(now).seconds * (1 - kLeastHope);
}

std::optional<SavedAnswer> BudgetSearch::solved(const PlannedStep& step, const Choices& kept) {
  SavedProblem problem{search_.model, step.plan, search_.machine, widest_seat(search_.where)};
  problem.device_bytes = step.plan.budget_bytes[static_cast<std::size_t>(runtime::Tier::device)];
  if (!own_device_ && problem.device_bytes == runtime::kUnlimited)
    problem.device_bytes = step.limits.host_bytes - step.needs.host;
  problem.may_leave = own_device_ && free_.activations && free_.farthest != Home::device;
  problem.thorough = false;
  problem.may_use_disk = free_.farthest == Home::disk;
  const std::int64_t others = estimates_.guess(kept).needs.host;
  if (problem.may_leave)
    problem.host_bytes =
        std::clamp<std::int64_t>(step.limits.host_bytes - others, 0, kMostHostBytes);
  return solve_saved(problem, &compiled_);
}

PlannedStep BudgetSearch::with_actions(PlannedStep step) {
  const Choices& now = step.choices;
  const bool saves_memory = again_part_of(now) > 0 || now.activations != Home::device;
  // A home that was asked for stays, and actions cannot say both.
  const bool is_open =
      free_.saved && now.actions.empty() && (free_.activations || now.activations == Home::device);
  if (!saves_memory || !is_open || !may_work()) return step;
  Choices changed = now;
  set_again_part(changed, 0);
  changed.activations = Home::device;
  if (!may_gain(now, changed)) return step;
  const double enough = price_of(step) * (1 - kLeastGain);
  const std::optional<SavedAnswer> answer = solved(step, changed);
  if (!answer || answer->step_seconds > enough) return step;
  changed.actions = runtime::without_kept(answer->saved);
  std::optional<PlannedStep> found = attempted(changed, step.limits, answer->step_seconds);
  return found && price_of(*found) <= enough ? std::move(*found) : std::move(step);
}

}  // namespace strata::plan
