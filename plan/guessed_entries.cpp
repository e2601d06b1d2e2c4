// Guesses which alternatives fit and how fast they are, and corrects guesses by what was compiled.
#include <algorithm>
#include <set>
#include <utility>

#include "plan/budget_entry.h"
#include "plan/held_part.h"

namespace strata::plan {
namespace {

using runtime::kUnlimited;

/// Micro-steps of Programs by layer that are compiled only to correct guesses.
constexpr int kFewCopies = 16;
/// Choices need at least this part of a guess that nothing has corrected: it counts all that may be
/// there at one time.
constexpr double kLeastOfGuess = 0.4;
/// The same of a guess that others of its stage, order and micro-batch have corrected.
constexpr double kLeastIfOthersCorrect = 0.7;
/// The same of a guess that choices with an equal key have corrected, compiled without a schedule.
constexpr double kLeastIfCorrected = 0.85;
/// The same where choices with an equal key were compiled with a schedule.
constexpr double kLeastIfCompiled = 0.97;
/// The part of the memory that what is kept for the backward pass should leave to transfers.
constexpr double kRoom = 0.03;

/// Returns the needs of choices whose like turned out to need `more` than was guessed, or less.
MemoryNeeds corrected(MemoryNeeds needs, const MemoryNeeds& more) {
  needs.device = std::max<std::int64_t>(0, needs.device + more.device);
  needs.host = std::max<std::int64_t>(0, needs.host + more.host);
  return needs;
}

}  // namespace

/// Returns the choices with the least share of recomputation with which `needs_of` says that they
/// fit; nullopt if none does.
template <typename NeedsOf>
std::optional<Choices> BudgetSearch::with_least_again(Choices choices, const MemoryLimits& limits,
                                                      const NeedsOf& needs_of) const {
  if (!free_.saved) return fits(needs_of(choices), limits) ? std::optional(choices) : std::nullopt;
  int too_little = -1, enough = kShareSteps;
  set_again_part(choices, 1);
  if (!fits(needs_of(choices), limits)) return {};
  while (enough - too_little > 1) {
    const int middle = (too_little + enough) / 2;
    set_again_part(choices, middle * kShare);
    (fits(needs_of(choices), limits) ? enough : too_little) = middle;
  }
  set_again_part(choices, enough * kShare);
  return choices;
}

/// Returns what says whether host memory and drives hold what `needs_of` says that choices need
/// with as much recomputation as may be.
template <typename NeedsOf>
auto BudgetSearch::held_beside(MemoryLimits limits, const NeedsOf& needs_of) const {
  limits.device_bytes = kUnlimited;
  return [this, limits, &needs_of](Choices some) {
    if (free_.saved) set_again_part(some, 1);
    return fits(needs_of(some), limits);
  };
}

/// Returns the choices with as much optimizer state off the device as is held, where that is less
/// than they say.
template <typename NeedsOf>
Choices BudgetSearch::with_part_held(const Choices& choices, const MemoryLimits& limits,
                                     const NeedsOf& needs_of) const {
  if (!own_device_ || !free_.optimizer) return choices;
  return with_held_part(choices, held_beside(limits, needs_of));
}

/// True if less of the optimizer's state is held than choices say, a share that alternatives have.
bool BudgetSearch::holds_listed_part(const Choices& choices, const MemoryLimits& limits) {
  if (!own_device_ || !free_.optimizer) return false;
  const auto needs_of = [&](const Choices& some) { return corrected_guess(some); };
  const std::optional<Choices> held = with_less_held(choices, held_beside(limits, needs_of));
  return held && is_listed_part(*held);
}

/// Returns the alternatives, those that host memory or drives do not hold with as much of the
/// optimizer's state there as these do.
std::vector<Choices> BudgetSearch::held_alternatives(const MemoryLimits& limits) const {
  std::vector<Choices> held;
  const auto guess = [&](const Choices& choices) { return estimates_->guess(choices).needs; };
  for (const Choices& choices : all_) held.push_back(with_part_held(choices, limits, guess));
  return held;
}

/// Replaces the guess of what `entry` needs and takes by a bound. False if its choices exclude one
/// another.
bool BudgetSearch::set_bound(Entry& entry) {
  const std::optional<StepEstimate> bound = estimates_->bound(entry.choices);
  if (!bound) return false;
  entry.price = price_of(entry.choices, bound->seconds);
  entry.least = bound->needs;
  entry.is_bound = true;
  return true;
}

/// The same, with less of the optimizer's state off the device where host memory or drives turn out
/// to hold less than was guessed.
bool BudgetSearch::set_held_bound(Entry& entry, const MemoryLimits& limits) {
  if (!set_bound(entry)) return false;
  const MemoryNeeds guess = estimates_->guess(entry.choices).needs;
  const MemoryNeeds more{.host = entry.least.host - guess.host};
  const Choices held = with_part_held(entry.choices, limits, [&](const Choices& choices) {
    return corrected(estimates_->guess(choices).needs, more);
  });
  if (held == entry.choices) return true;
  entry.choices = held;
  return set_bound(entry);
}

/// Returns `entry` with a share of recomputation with which it fits, known from compiling; nullopt
/// if there is none, or if it is not found in a few tries.
std::optional<BudgetSearch::Entry> BudgetSearch::bounded(Entry entry, const MemoryLimits& limits) {
  constexpr int kTries = 4;
  std::optional<Entry> fitting;
  for (int tries = 0; tries < kTries; ++tries) {
    if (!set_bound(entry)) return {};
    const bool enough = fits(entry.least, limits);
    if (enough) fitting = entry;
    if (!free_.saved || (!enough && fitting)) return fitting;
    const double part = again_part_of(entry.choices);
    // Guesses are off by about the same for another share.
    const MemoryNeeds guess = estimates_->guess(entry.choices).needs;
    const MemoryNeeds more{.device = entry.least.device - guess.device,
                           .host = entry.least.host - guess.host};
    const auto needs_of = [&](const Choices& choices) {
      return corrected(estimates_->guess(choices).needs, more);
    };
    const std::optional<Choices> next = with_least_again(entry.choices, limits, needs_of);
    const double wanted = next ? again_part_of(*next) : 1;
    if (enough ? wanted >= part : part == 1) return fitting;
    set_again_part(entry.choices, enough ? wanted : std::max(wanted, part + kShare));
  }
  return fitting;
}

/// True unless Programs by layer hold each layer so many times that compiling one more takes long.
static bool has_few_copies(const Choices& choices) {
  return !choices.layer_major || choices.micro_steps <= kFewCopies;
}

bool BudgetSearch::may_fit(const Choices& choices, const MemoryLimits& limits) {
  const bool is_divided = divides(limits);
  double least = kLeastIfOthersCorrect;
  if (!is_divided && lacking_.contains(lack_key(choices)))
    least = kLeastIfCorrected;
  else if (choices.layer_major && has_few_copies(choices) && !is_corrected(choices))
    least = kLeastOfGuess;
  MemoryNeeds needs = corrected_guess(choices);
  needs.device = scaled(needs.device, least);
  needs.host = scaled(needs.host, least);
  if (const auto at = least_lacking_.find(lack_key(choices)); at != least_lacking_.end()) {
    const std::int64_t known = estimates_->guess(choices).needs.device + at->second;
    needs.device = std::max(needs.device, scaled(known, kLeastIfCompiled));
  }
  return fits(needs, limits);
}

BudgetSearch::LackKey BudgetSearch::lack_key(const Choices& choices) {
  return {choices.sharding.stage, choices.layer_major, choices.micro_batch,
          choices.activations,    choices.parameters,  choices.sums_away};
}

/// Compiles the first of choices with equal keys without a schedule, and so corrects guesses of
/// all of them, which may be too small or too large. Returns false if that was done before, if it
/// takes too long, or if the choices exclude one another.
bool BudgetSearch::corrects_like(const Choices& choices) {
  if (lacking_.contains(lack_key(choices)) || !has_few_copies(choices)) return false;
  MemoryNeeds& lacking = lacking_[lack_key(choices)];
  const std::optional<StepEstimate> bound = estimates_->bound(choices);
  if (!bound) return false;
  const MemoryNeeds guess = estimates_->guess(choices).needs;
  lacking.device = bound->needs.device - guess.device;
  lacking.host = bound->needs.host - guess.host;
  return true;
}

/// Returns what guesses of such choices lacked; of choices that were not tried, the least that
/// others of their stage, order and micro-batch lacked; nullopt if none of them was tried.
std::optional<MemoryNeeds> BudgetSearch::lacking_like(const Choices& choices) const {
  const LackKey key = lack_key(choices);
  if (const auto at = lacking_.find(key); at != lacking_.end()) return at->second;
  std::optional<MemoryNeeds> least;
  for (const auto& [other, lacking] : lacking_) {
    const bool is_like = std::get<0>(other) == std::get<0>(key) &&
                         std::get<1>(other) == std::get<1>(key) &&
                         std::get<2>(other) == std::get<2>(key);
    if (is_like && (!least || lacking.device < least->device)) least = lacking;
  }
  return least;
}

bool BudgetSearch::is_corrected(const Choices& choices) const {
  return lacking_like(choices).has_value();
}

MemoryNeeds BudgetSearch::corrected_guess(const Choices& choices) {
  return corrected(estimates_->guess(choices).needs, lacking_like(choices).value_or(MemoryNeeds{}));
}

/// Returns limits that leave room for transfers to overlap computation: a schedule that has hardly
/// more memory than it needs waits for most of them.
MemoryLimits BudgetSearch::roomy(MemoryLimits limits) const {
  std::int64_t& scarce = divides(limits) ? limits.host_bytes : limits.device_bytes;
  scarce = scaled(scarce, 1 - kRoom);
  return limits;
}

/// Returns the choices with as much more recomputation as makes steps fastest, as guessed: what is
/// recomputed need not cross a link.
Choices BudgetSearch::with_fastest_again(const Choices& choices) {
  if (!free_.saved || choices.activations == Home::device) return choices;
  Choices fastest = choices;
  double best = estimates_->guess(choices).seconds;
  for (double part = again_part_of(choices) + kShare; part <= 1; part += kShare) {
    Choices more = choices;
    set_again_part(more, part);
    const double seconds = estimates_->guess(more).seconds;
    if (seconds < best) fastest = more;
    best = std::min(best, seconds);
  }
  return fastest;
}

/// Returns the choices with as little recomputation as is guessed to fit, without room for more;
/// nullopt if none is guessed to.
std::optional<Choices> BudgetSearch::with_least_that_fits(const Choices& choices,
                                                          const MemoryLimits& limits) {
  return with_least_again(choices, limits,
                          [&](const Choices& some) { return corrected_guess(some); });
}

/// Returns `asked` with as little recomputation as is guessed to fit and leaves some room, or more
/// where that makes it faster, and with no more of the optimizer's state off the device than other
/// memories hold; nullopt if that is unlikely to fit at all.
std::optional<BudgetSearch::Entry> BudgetSearch::guessed_entry(const Choices& asked,
                                                               std::size_t order,
                                                               const MemoryLimits& limits) {
  const auto needs_of = [&](const Choices& some) { return corrected_guess(some); };
  const Choices choices = with_part_held(asked, limits, needs_of);
  Entry entry{.choices = choices, .order = order};
  auto fitting = with_least_again(choices, roomy(limits), needs_of);
  if (!fitting) fitting = with_least_again(choices, limits, needs_of);
  entry.is_likely = fitting.has_value();
  if (fitting)
    entry.choices = with_fastest_again(*fitting);
  else if (free_.saved)
    set_again_part(entry.choices, 1);  // guesses may be too large
  entry.price = price_of(entry.choices, estimates_->guess(entry.choices).seconds);
  entry.least = corrected_guess(entry.choices);
  if (!may_fit(entry.choices, limits)) return {};
  return entry;
}

std::vector<BudgetSearch::Entry> BudgetSearch::guessed(const MemoryLimits& limits) {
  std::vector<Entry> entries;
  std::vector<std::size_t> too_large;
  std::set<LackKey> likely;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (leaves_drive_empty(all_[i])) continue;
    std::optional<Entry> entry = guessed_entry(all_[i], i, limits);
    if (entry && !entry->is_likely && !divides(limits) && !is_corrected(entry->choices) &&
        corrects_like(entry->choices))
      entry = guessed_entry(all_[i], i, limits);
    if (!entry) {
      too_large.push_back(i);
      continue;
    }
    if (entry->is_likely) likely.insert(lack_key(entry->choices));
    entries.push_back(std::move(*entry));
  }
  if (divides(limits)) return entries;
  // Choices that are guessed to be too large are tried again with guesses corrected, unless others
  // with an equal key are guessed to fit: compiling those corrects these.
  const auto guess = [&](const Choices& choices) { return estimates_->guess(choices).needs; };
  for (const std::size_t i : too_large) {
    Choices least = with_part_held(all_[i], limits, guess);
    if (free_.saved) set_again_part(least, 1);
    MemoryNeeds needs = estimates_->guess(least).needs;
    needs.device = scaled(needs.device, kLeastOfGuess);
    if (likely.contains(lack_key(least)) || !fits(needs, limits)) continue;
    corrects_like(least);  // or choices before it did, which serves as well
    if (auto entry = guessed_entry(all_[i], i, limits)) entries.push_back(std::move(*entry));
  }
  return entries;
}

/// True if all records of the optimizer would stay in host memory: the same choices with that as
/// their home are among the alternatives.
bool BudgetSearch::leaves_drive_empty(const Choices& choices) {
  return free_.optimizer && choices.optimizer == Home::disk && choices.parameters != Home::disk &&
         estimates_->guess(choices).needs.disk == 0;
}

bool BudgetSearch::divides(const MemoryLimits& limits) const {
  return !own_device_ && limits.host_bytes != kUnlimited && limits.device_bytes == kUnlimited;
}

}  // namespace strata::plan
