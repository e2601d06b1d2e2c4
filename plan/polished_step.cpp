// Tries what lies near a step that was found, and is no alternative of its own.
#include <algorithm>
#include <utility>

#include "plan/budget_entry.h"

namespace strata::plan {
namespace {

/// Shares of optimizer state that leave the device are a quarter apart in alternatives. Around the
/// best, they are tried half as far from one another, and then half as far again.
constexpr double kFarParts = 1.0 / 8;
constexpr double kNearParts = 1.0 / 16;

}  // namespace

/// Takes back recomputation of `best` as long as it fits without and becomes no slower; if that
/// helps nothing, adds some as long as that makes it faster, since transfers then have more room.
PlannedStep BudgetSearch::polished(PlannedStep best) {
  if (!free_.saved || again_part_of(best.choices) == 0) return best;
  const auto helps = [&](double more, bool if_as_fast) {
    Choices other = best.choices;
    const double part = again_part_of(other) + more;
    if (part < 0 || part > 1 || !may_work()) return false;
    set_again_part(other, part);
    std::optional<PlannedStep> step = fitting_step(other, best.limits, compile::Effort::rough);
    const double enough = price_of(best);
    if (!step || !(if_as_fast ? price_of(*step) <= enough : price_of(*step) < enough)) return false;
    best = std::move(*step);
    return true;
  };
  const double before = price_of(best);
  // Less of it may change nothing for some steps: shares come in whole values of whole layers.
  while (helps(-kShare, true)) continue;
  if (price_of(best) < before) return best;
  // More of it helps in leaps: a step that gains nothing may lie before one that does.
  bool is_between = false;  // what lies before the best was not tried
  while (helps(2 * kShare, false)) is_between = true;
  if (!helps(kShare, false) && is_between) helps(-kShare, false);
  return best;
}

/// Tries shares of optimizer state between those of the alternatives, as far as they are guessed to
/// make steps faster: what the host need not update, and what leaves room for saved values.
PlannedStep BudgetSearch::with_finer_part(PlannedStep best) {
  const Choices& found = best.choices;
  if (!free_.optimizer || found.optimizer == Home::device || found.parameters == Home::disk)
    return best;
  for (double change = kFarParts; change >= kNearParts; change /= 2) {
    const Choices middle = best.choices;
    for (const double way : {-change, change}) {
      Choices other = middle;
      other.optimizer_part += way;
      if (other.optimizer_part <= 0 || other.optimizer_part > 1 || leaves_drive_empty(other))
        continue;
      const std::optional<Entry> entry = guessed_entry(other, 0, best.limits);
      if (!entry || !entry->is_likely || entry->price >= price_of(best) || !may_work()) continue;
      const double guessed = entry->price / price_of(entry->choices, 1);
      std::optional<PlannedStep> step = attempted(entry->choices, best.limits, guessed);
      if (step && price_of(*step) < price_of(best)) best = std::move(*step);
    }
  }
  return best;
}

/// Sends parameters of `best` to host memory, where the host's updates leave them, and keeps as
/// much more of the optimizer's state on the device as has room there then: the host updates less.
PlannedStep BudgetSearch::with_parameters_away(PlannedStep best) {
  const Choices& found = best.choices;
  if (!own_device_ || !free_.parameters || !free_.optimizer || free_.farthest == Home::device ||
      found.parameters != Home::device || found.optimizer == Home::device)
    return best;
  std::optional<Choices> away;
  Choices other = found;
  other.parameters = Home::host;
  if (free_.activations) other.activations = Home::device;
  for (; other.optimizer_part > 0; other.optimizer_part -= kNearParts) {
    if (!fits(corrected_guess(other), roomy(best.limits))) break;
    away = other;
  }
  if (!away || !may_work()) return best;
  const double guessed = estimates_->guess(*away).seconds;
  if (price_of(*away, guessed) >= price_of(best)) return best;
  std::optional<PlannedStep> step = attempted(*away, best.limits, guessed);
  return step && price_of(*step) * kNoFaster < price_of(best) ? std::move(*step) : best;
}

/// Brings saved values, sums of gradients, parameters or optimizer state of `best` back from a
/// drive to host memory, and to the device, with more recomputation in their place, where steps are
/// as fast: what does not move cannot wait, and drives wear out. Parameters that were sent away
/// just now, since that made the step faster, stay there.
PlannedStep BudgetSearch::with_less_offload(PlannedStep best, bool keeps_parameters) {
  const double enough = price_of(best) * kNoFaster;
  const auto take_back = [&](bool is_free, const auto& bring) {
    Choices nearer = best.choices;
    bring(nearer);
    if (!is_free || nearer == best.choices || !may_work()) return;
    const std::optional<Entry> entry = guessed_entry(nearer, 0, best.limits);
    if (!entry || !entry->is_likely || entry->price > enough) return;
    const double guessed = entry->price / price_of(entry->choices, 1);
    std::optional<PlannedStep> step = attempted(entry->choices, best.limits, guessed);
    if (step && price_of(*step) <= enough) best = std::move(*step);
  };
  const auto from_drive = [](Home& home) { home = std::min(home, Home::host); };
  if (own_device_) {
    take_back(free_.parameters || free_.optimizer, [&](Choices& c) {
      if (free_.parameters) from_drive(c.parameters);
      if (free_.optimizer && c.parameters != Home::disk) from_drive(c.optimizer);
    });
    take_back(free_.activations, [&](Choices& c) { from_drive(c.activations); });
  }
  take_back(free_.activations, [](Choices& c) { c.activations = Home::device; });
  take_back(free_.sums, [](Choices& c) { c.sums_away = false; });
  take_back(free_.parameters && !keeps_parameters, [](Choices& c) { c.parameters = Home::device; });
  take_back(free_.optimizer && best.choices.parameters == Home::device, [&](Choices& c) {
    c.optimizer = Home::device;
    c.optimizer_part = 1;
    if (free_.sums) c.sums_away = false;
  });
  return best;
}

}  // namespace strata::plan
