// Searches for the fastest step: guesses, then compiles what may be fastest.
#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <utility>

#include "plan/budget_entry.h"
#include "plan/resident_records.h"
#include "plan/widest_seat.h"

namespace strata::plan {
namespace {

using compile::Effort;
using runtime::kUnlimited;
using runtime::Tier;

/// Schedules come at most this close to what the busiest resource does. Once a few with parameters
/// in one home, in one order, were tried, the closest of them tells how close these come.
constexpr double kReached = 1.02;
constexpr int kTellingTries = 3;
/// Steps that are foreseen to be faster by less are as fast: then what moves less is taken.
constexpr double kNoFaster = 1.01;
/// A step that takes so many times its guess waits.
constexpr double kFarFromGuess = 1.05;
/// Quickly compiled steps in a row that are no faster than the best one, after which no more are
/// tried.
constexpr int kPatience = 5;
/// The fastest of the quickly compiled steps, which are compiled as a run would.
constexpr std::size_t kFinalists = 3;
/// The share of recomputation goes in steps of 1 / kShareSteps.
constexpr int kShareSteps = 16;
constexpr double kShare = 1.0 / kShareSteps;
/// Micro-steps of Programs by layer that are compiled only to correct guesses.
constexpr int kFewCopies = 16;
/// The part of the memory that what is kept for the backward pass should leave to transfers.
constexpr double kRoom = 0.03;
/// True if the choices differ in nothing but parameters, sums of gradients or saved values that go
/// farther, or in more recomputation, which makes no step faster. (State of the optimizer may: its
/// updates are hidden behind the next step.)
bool costs_more(const Choices& choices, const Choices& than) {
  Choices like = choices;
  like.parameters = than.parameters;
  like.activations = than.activations;
  like.sums_away = than.sums_away;
  set_again_part(like, again_part_of(than));
  Choices same = than;
  set_again_part(same, again_part_of(than));
  return like == same && again_part_of(choices) >= again_part_of(than) &&
         choices.parameters >= than.parameters && choices.activations >= than.activations &&
         choices.sums_away >= than.sums_away;
}

/// Returns the memory that Programs lack and need, as far as `fit` knows it; else 0.
MemoryNeeds needed_by(const compile::Fit& fit) {
  MemoryNeeds needed;
  const auto index = [](Tier tier) { return static_cast<std::size_t>(tier); };
  if (!fit.tiers[index(Tier::device)].fits())
    needed.device = fit.tiers[index(Tier::device)].needed_bytes;
  if (fit.kept_too_much)
    needed.host = fit.kept_too_much->state_bytes + fit.kept_too_much->saving_bytes;
  else if (const compile::TierFit& pinned = fit.tiers[index(Tier::pinned)]; !pinned.fits())
    needed.host =
        pinned.needed_bytes + (fit.shortage ? fit.shortage->kept_bytes[index(Tier::pageable)] : 0);
  return needed;
}

}  // namespace

struct BudgetSearch::Tried {
  Choices choices;
  double price = 0;
  std::size_t order = 0;                 ///< as Entry has it
  std::optional<PlannedStep> step = {};  ///< if this is what a run would do
};

/// One of both is there.
struct BudgetSearch::Quick {
  std::optional<Tried> tried;
  compile::Fit fit;  ///< why it does not fit
};

class BudgetSearch::Queue {
 public:
  void push(Entry entry) { open_.push(std::move(entry)); }
  std::optional<Entry> pop() {
    if (open_.empty()) return {};
    Entry first = open_.top();
    open_.pop();
    return first;
  }

 private:
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      if (a.is_likely != b.is_likely) return b.is_likely;
      return a.price != b.price ? a.price > b.price : a.order > b.order;
    }
  };
  std::priority_queue<Entry, std::vector<Entry>, Later> open_;
};

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

/// Returns `entry` with a share of recomputation with which it fits, known from compiling; nullopt
/// if there is none, or if it is not found in a few tries.
std::optional<BudgetSearch::Entry> BudgetSearch::bounded(Entry entry, const MemoryLimits& limits) {
  constexpr int kTries = 4;
  std::optional<Entry> fitting;
  for (int tries = 0; tries < kTries; ++tries) {
    const std::optional<StepEstimate> bound = estimates_.bound(entry.choices);
    if (!bound) return {};
    const bool enough = fits(bound->needs, limits);
    if (enough) {
      entry.price = price_of(entry.choices, bound->seconds);
      entry.least = bound->needs;
      entry.is_bound = true;
      fitting = entry;
    }
    if (!free_.saved || (!enough && fitting)) return fitting;
    const double part = again_part_of(entry.choices);
    // Guesses are off by about the same for another share.
    const MemoryNeeds guess = estimates_.guess(entry.choices).needs;
    const auto corrected = [&](const Choices& choices) {
      MemoryNeeds needs = estimates_.guess(choices).needs;
      needs.device += bound->needs.device - guess.device;
      needs.host += bound->needs.host - guess.host;
      return needs;
    };
    const std::optional<Choices> next = with_least_again(entry.choices, limits, corrected);
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
  // Layer by layer, guesses count what one micro-batch needs besides its saved values for all.
  const double least =
      choices.layer_major && has_few_copies(choices) && !is_corrected(choices) ? 0.4 : 0.7;
  MemoryNeeds guessed = corrected_guess(choices);
  guessed.device = scaled(guessed.device, least);
  guessed.host = scaled(guessed.host, least);
  return fits(guessed, limits);
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
  const std::optional<StepEstimate> bound = estimates_.bound(choices);
  if (!bound) return false;
  const MemoryNeeds guess = estimates_.guess(choices).needs;
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
  MemoryNeeds needs = estimates_.guess(choices).needs;
  const MemoryNeeds lacking = lacking_like(choices).value_or(MemoryNeeds{});
  needs.device += lacking.device;
  needs.host += lacking.host;
  return needs;
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
  double best = estimates_.guess(choices).seconds;
  for (double part = again_part_of(choices) + kShare; part <= 1; part += kShare) {
    Choices more = choices;
    set_again_part(more, part);
    const double seconds = estimates_.guess(more).seconds;
    if (seconds < best) fastest = more;
    best = std::min(best, seconds);
  }
  return fastest;
}

/// Returns the choices with as little recomputation as is guessed to fit and leaves some room, or
/// more where that makes them faster; nullopt if they are unlikely to fit at all.
std::optional<BudgetSearch::Entry> BudgetSearch::guessed_entry(const Choices& choices,
                                                               std::size_t order,
                                                               const MemoryLimits& limits) {
  const auto needs_of = [&](const Choices& some) { return corrected_guess(some); };
  Entry entry{.choices = choices, .order = order};
  auto fitting = with_least_again(choices, roomy(limits), needs_of);
  if (!fitting) fitting = with_least_again(choices, limits, needs_of);
  entry.is_likely = fitting.has_value();
  if (fitting)
    entry.choices = with_fastest_again(*fitting);
  else if (free_.saved)
    set_again_part(entry.choices, 1);  // guesses may be too large
  entry.price = price_of(entry.choices, estimates_.guess(entry.choices).seconds);
  entry.least = corrected_guess(entry.choices);
  if (!may_fit(entry.choices, limits)) return {};
  return entry;
}

std::vector<BudgetSearch::Entry> BudgetSearch::guessed(const MemoryLimits& limits) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (leaves_drive_empty(all_[i])) continue;
    std::optional<Entry> entry = guessed_entry(all_[i], i, limits);
    if (entry && !entry->is_likely && !divides(limits) && !is_corrected(entry->choices) &&
        corrects_like(entry->choices))
      entry = guessed_entry(all_[i], i, limits);
    if (entry) entries.push_back(*entry);
  }
  return entries;
}

/// True if all records of the optimizer would stay in host memory: the same choices with that as
/// their home are among the alternatives.
bool BudgetSearch::leaves_drive_empty(const Choices& choices) {
  return free_.optimizer && choices.optimizer == Home::disk && choices.parameters != Home::disk &&
         estimates_.guess(choices).needs.disk == 0;
}

bool BudgetSearch::divides(const MemoryLimits& limits) const {
  return !own_device_ && limits.host_bytes != kUnlimited && limits.device_bytes == kUnlimited;
}

/// Compiles once what a run would search for: where the host is the device, half of what is left
/// goes to the device, and no record stays in host memory; else those stay that fit, or none; none
/// is read ahead. Where a run would search for nothing, this is its step.
BudgetSearch::Quick BudgetSearch::quickly(const Entry& entry, const MemoryLimits& limits) {
  runtime::Plan plan = estimates_.with_room_in_host_memory(limited(entry.choices, limits));
  if (divides(limits)) {
    const std::int64_t left = limits.host_bytes - entry.least.device - entry.least.host;
    const std::int64_t device = entry.least.device + left / 2;
    plan.budget_bytes[static_cast<std::size_t>(Tier::device)] = device;
    plan.host_bytes -= device;
  }
  plan.saving = search_.savings.back();
  const comm::MeshSeat seat = widest_seat(search_.where);
  const auto compiled = [&](const runtime::Plan& some) {
    compile::Compiled made =
        compile::compile(search_.model, some, search_.machine, seat, Effort::rough);
    compiled_ += made.work;
    return made;
  };
  const bool keeps_records =
      own_device_ && entry.choices.optimizer == Home::disk && limits.host_bytes != kUnlimited;
  const runtime::Plan keeping =
      keeps_records ? with_resident_records(compile::settings_of(search_.model, plan, seat),
                                            estimates_.units(), 1)
                    : plan;
  compile::Compiled made = compiled(keeping);
  if (keeps_records && !made.fit.fits()) made = compiled(plan);
  if (!made.fit.fits()) return {{}, std::move(made.fit)};
  PlannedStep step = planned(entry.choices, limits, made);
  Tried tried{entry.choices, price_of(entry.choices, step.forecast.step_seconds), entry.order};
  const bool searches = divides(limits) || search_.savings.size() > 1 ||
                        entry.choices.optimizer == Home::disk ||
                        entry.choices.parameters == Home::disk;
  if (!searches) tried.step = std::move(step);
  return {std::move(tried), {}};
}

/// Returns `entry` with more recomputation, after it did not fit for the reason in `fit`; nullopt
/// if there is no more.
std::optional<BudgetSearch::Entry> BudgetSearch::with_more_again(const Entry& entry,
                                                                 const compile::Fit& fit,
                                                                 const MemoryLimits& limits) {
  const Choices& tried = entry.choices;
  const MemoryNeeds guess = estimates_.guess(tried).needs;
  const MemoryNeeds needed = needed_by(fit);
  MemoryNeeds& lacking = lacking_[lack_key(tried)];
  lacking.device = std::max(lacking.device, needed.device - guess.device);
  lacking.host = std::max(lacking.host, needed.host - guess.host);
  const double part = again_part_of(tried);
  if (!free_.saved || part == 1) return {};
  Entry more = guessed_entry(tried, entry.order, limits).value_or(entry);
  if (again_part_of(more.choices) <= part) {
    set_again_part(more.choices, std::min(1.0, part + kShare));
    more.price = price_of(more.choices, estimates_.guess(more.choices).seconds);
  }
  return more;
}

std::vector<BudgetSearch::Tried> BudgetSearch::try_all(const MemoryLimits& limits) {
  Queue open;
  for (Entry& entry : guessed(limits)) open.push(std::move(entry));
  std::vector<Tried> tried;
  double best = 0;
  struct Closest {
    int tries = 0;
    double factor = std::numeric_limits<double>::infinity();
  };
  std::map<std::pair<Home, bool>, Closest> closest;
  int in_vain = 0;
  while (const std::optional<Entry> next = open.pop()) {
    Closest& like = closest[{next->choices.parameters, next->choices.layer_major}];
    const double reached = like.tries < kTellingTries ? kReached : std::max(kReached, like.factor);
    if (!may_work()) break;
    if (!tried.empty() && next->price * reached >= best) continue;
    if (std::ranges::any_of(tried,
                            [&](const Tried& t) { return costs_more(next->choices, t.choices); }))
      continue;
    if (divides(limits) && !next->is_bound) {
      if (std::optional<Entry> entry = bounded(*next, limits)) open.push(*entry);
      continue;
    }
    if (!divides(limits) && corrects_like(next->choices)) {
      if (auto entry = guessed_entry(next->choices, next->order, limits)) open.push(*entry);
      continue;
    }
    if (!divides(limits) && !fits(corrected_guess(next->choices), limits) &&
        again_part_of(next->choices) < 1 && free_.saved) {
      // Guesses have been corrected since.
      if (auto entry = guessed_entry(next->choices, next->order, limits);
          entry && again_part_of(entry->choices) > again_part_of(next->choices))
        open.push(*entry);
      continue;
    }
    Quick quick = quickly(*next, limits);
    const double wear = price_of(next->choices, 1);
    attempts_.push_back({next->choices, next->price / wear, {}, ""});
    if (quick.tried)
      attempts_.back().seconds = quick.tried->price / wear;
    else
      attempts_.back().lacks = needed_by(quick.fit).host > 0 ? "host memory" : "device memory";
    if (!quick.tried) {
      if (auto more = with_more_again(*next, quick.fit, limits)) open.push(*more);
      continue;
    }
    const bool faster = tried.empty() || quick.tried->price * kNoFaster < best;
    if (faster) best = quick.tried->price;
    like.factor = std::min(like.factor, quick.tried->price / next->price);
    ++like.tries;
    tried.push_back(std::move(*quick.tried));
    in_vain = faster ? 0 : in_vain + 1;
    if (in_vain == kPatience) break;
  }
  return tried;
}

/// Takes back recomputation of `best` as long as it fits without and becomes faster; if that helps
/// nothing, adds some as long as that makes it faster, since transfers then have more room.
PlannedStep BudgetSearch::polished(PlannedStep best) {
  if (!free_.saved || again_part_of(best.choices) == 0) return best;
  const double before = price_of(best);
  for (const double change : {-kShare, kShare}) {
    // More of it helps in leaps: a step that gains nothing may lie before one that does.
    const int farthest = change > 0 ? 2 : 1;
    for (int ahead = 1; ahead <= farthest && may_work();) {
      Choices other = best.choices;
      const double part = again_part_of(other) + ahead * change;
      if (part < 0 || part > 1) break;
      set_again_part(other, part);
      std::optional<PlannedStep> step = fitting_step(other, best.limits, Effort::rough);
      // Less of it may change nothing for some steps: shares come in whole values of whole layers.
      const bool helps = step && (change > 0 ? price_of(*step) < price_of(best)
                                             : price_of(*step) <= price_of(best));
      ahead = helps ? 1 : ahead + 1;
      if (helps) best = std::move(*step);
    }
    if (price_of(best) < before) break;
  }
  return best;
}

/// Brings saved values, sums of gradients, parameters or optimizer state of `best` back from a
/// drive to host memory, and to the device, with more recomputation in their place, where steps are
/// as fast: what does not move cannot wait, and drives wear out.
PlannedStep BudgetSearch::with_less_offload(PlannedStep best) {
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
  take_back(free_.parameters, [](Choices& c) { c.parameters = Home::device; });
  take_back(free_.optimizer && best.choices.parameters == Home::device, [&](Choices& c) {
    c.optimizer = Home::device;
    c.optimizer_part = 1;
    if (free_.sums) c.sums_away = false;
  });
  return best;
}

std::optional<PlannedStep> BudgetSearch::fastest(const MemoryLimits& limits) {
  begun_ = work();
  std::vector<Tried> tried = try_all(limits);
  std::ranges::stable_sort(tried, {}, &Tried::price);
  struct Finalist {
    std::size_t order = 0;
    PlannedStep step;
    bool is_polished = false;
  };
  std::vector<Finalist> finalists;
  double best = std::numeric_limits<double>::infinity();
  for (Tried& one : tried) {
    if (finalists.size() == kFinalists) break;
    std::optional<PlannedStep> step =
        one.step ? std::move(one.step) : fitting_step(one.choices, limits, Effort::rough);
    if (!step) continue;
    // Transfers that wait for memory may be worth more recomputation.
    const double guess = estimates_.guess(step->choices).seconds;
    const bool waits = step->forecast.step_seconds > kFarFromGuess * guess;
    if (waits) step = polished(std::move(*step));
    best = std::min(best, price_of(*step));
    finalists.push_back({one.order, std::move(*step), waits});
  }
  // The first of the alternatives that are equally fast moves least.
  std::erase_if(finalists, [&](const Finalist& finalist) {
    return price_of(finalist.step) > best * kNoFaster;
  });
  const auto first = std::ranges::min_element(finalists, {}, &Finalist::order);
  if (first == finalists.end()) return {};
  PlannedStep step = std::move(first->step);
  return with_less_offload(first->is_polished ? std::move(step) : polished(std::move(step)));
}

}  // namespace strata::plan
