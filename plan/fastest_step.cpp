// Searches for the fastest step: compiles what is guessed to be fastest, as long as more may be.
#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/budget_entry.h"
#include "plan/resident_records.h"
#include "plan/widest_seat.h"

namespace strata::plan {
namespace {

using compile::Effort;
using runtime::kUnlimited;
using runtime::Tier;

/// Schedules come at most this close to what the busiest resource does.
constexpr double kReached = 1.02;
/// Tries of one kind (Closeness) that tell how close schedules of it come to their guesses.
constexpr std::size_t kTellingTries = 3;
/// A step that takes so many times its guess waits.
constexpr double kFarFromGuess = 1.05;
/// A step that takes so many times the best one stays slower, whatever share it recomputes.
constexpr double kFarFromBest = 1.08;
/// A quickly compiled step that takes so many times what is wanted stays slower, whatever records a
/// search reads ahead.
constexpr double kHopeless = 1.5;
/// A step that takes so many times what is enough may become fast enough by another share.
constexpr double kNearlyEnough = 1.02;
/// A step that recomputes so much for the room of transfers is tried without that room, too: what
/// is less is left to polished().
constexpr double kDearRoom = 4 * kShare;
/// Quickly compiled steps in a row, none faster than the best, after which no more are tried.
constexpr int kPatience = 5;
/// The fastest of the quickly compiled steps, which are compiled as a run would.
constexpr std::size_t kFinalists = 3;

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

/// How close schedules come to what the busiest resource does. Once a few with parameters in one
/// home, in one order, and with sums of gradients in one home were tried, the closest of them tells
/// it; before, it does so only if it came closer than any should. Those that are guessed to take
/// equally long, as those of two stages may, tell it once.
class Closeness {
 public:
  /// Returns how many times its guess a step of such choices takes at least.
  [[nodiscard]] double of(const Choices& choices) const {
    const auto at = kinds_.find(kind_of(choices));
    if (at == kinds_.end()) return kReached;
    const Kind& kind = at->second;
    return kind.guesses.size() < kTellingTries ? std::min(kReached, kind.factor) : kind.factor;
  }
  void note(const Choices& choices, double guessed, double found) {
    Kind& kind = kinds_[kind_of(choices)];
    const bool is_new = std::ranges::none_of(kind.guesses, [&](double known) {
      return guessed < known * kNoFaster && known < guessed * kNoFaster;
    });
    if (is_new) kind.guesses.push_back(guessed);
    kind.factor = std::min(kind.factor, found / guessed);
  }

 private:
  struct Kind {
    std::vector<double> guesses;  ///< those that differ
    double factor = std::numeric_limits<double>::infinity();
  };
  using Key = std::tuple<Home, bool, bool>;
  static Key kind_of(const Choices& choices) {
    return {choices.parameters, choices.layer_major, choices.sums_away};
  }
  std::map<Key, Kind> kinds_;
};

}  // namespace

struct BudgetSearch::Tried {
  Choices choices;
  double price = 0;
  double seconds = 0;                    ///< foreseen
  std::size_t order = 0;                 ///< as Entry has it
  std::optional<PlannedStep> step = {};  ///< if this is what a run would do
};

struct BudgetSearch::Finalist {
  std::size_t order = 0;  ///< as Entry has it
  PlannedStep step;
  bool is_polished = false;
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

/// Compiles once what a run would search for: where the host is the device, half of what is left
/// goes to the device, and no record stays in host memory; else those stay that fit, or none; none
/// is read ahead. Where a run would search for nothing, this is its step.
BudgetSearch::Quick BudgetSearch::quickly(const Entry& entry, const MemoryLimits& limits) {
  runtime::Plan plan = estimates_->with_room_in_host_memory(limited(entry.choices, limits));
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
                                            estimates_->units(), 1)
                    : plan;
  compile::Compiled made = compiled(keeping);
  if (keeps_records && !made.fit.fits()) made = compiled(plan);
  if (!made.fit.fits()) return {{}, std::move(made.fit)};
  PlannedStep step = planned(entry.choices, limits, made);
  if (step.needs.disk > limits.disk_bytes) return {{}, std::move(made.fit)};
  const double seconds = step.forecast.step_seconds;
  Tried tried{entry.choices, price_of(entry.choices, seconds), seconds, entry.order};
  const bool searches = divides(limits) || search_.savings.size() > 1 ||
                        entry.choices.optimizer == Home::disk ||
                        entry.choices.parameters == Home::disk;
  if (!searches) tried.step = std::move(step);
  return {std::move(tried), {}};
}

/// Returns `entry` with less of the optimizer's state off the device if host memory was too little,
/// else with more recomputation, after it did not fit for the reason in `fit`; nullopt if there is
/// neither, or if the former is an alternative of its own.
std::optional<BudgetSearch::Entry> BudgetSearch::with_less_needed(const Entry& entry,
                                                                  const compile::Fit& fit,
                                                                  const MemoryLimits& limits) {
  const Choices& tried = entry.choices;
  const MemoryNeeds guess = estimates_->guess(tried).needs;
  const MemoryNeeds needed = needed_by(fit);
  MemoryNeeds& lacking = lacking_[lack_key(tried)];
  lacking.device = std::max(lacking.device, needed.device - guess.device);
  lacking.host = std::max(lacking.host, needed.host - guess.host);
  if (needed.host > 0) {  // less of the optimizer's state may be held
    if (holds_listed_part(tried, limits)) return {};
    if (auto fewer = guessed_entry(tried, entry.order, limits);
        fewer && fewer->choices.optimizer_part < tried.optimizer_part)
      return fewer;
  }
  const double part = again_part_of(tried);
  if (!free_.saved || part == 1) {
    if (needed.device > 0 && !divides(limits)) {
      const std::int64_t more = needed.device - guess.device;
      const auto [at, fresh] = least_lacking_.try_emplace(lack_key(tried), more);
      at->second = std::min(at->second, more);
    }
    return {};
  }
  Entry more = guessed_entry(tried, entry.order, limits).value_or(entry);
  if (again_part_of(more.choices) <= part) {
    set_again_part(more.choices, std::min(1.0, part + kShare));
    more.price = price_of(more.choices, estimates_->guess(more.choices).seconds);
  }
  return more;
}

/// Puts `entry` back as it is known better than when it was put in, if it is. False: it is to be
/// compiled as it is.
bool BudgetSearch::is_put_back(const Entry& entry, const MemoryLimits& limits, Queue& open) {
  if (divides(limits)) {
    if (entry.is_bound) return false;
    if (std::optional<Entry> better = bounded(entry, limits)) open.push(std::move(*better));
    return true;
  }
  if (corrects_like(entry.choices)) {
    if (auto better = guessed_entry(entry.choices, entry.order, limits))
      open.push(std::move(*better));
    return true;
  }
  if (!free_.saved || again_part_of(entry.choices) == 1 ||
      fits(corrected_guess(entry.choices), limits))
    return false;
  // Guesses have been corrected since.
  if (auto better = guessed_entry(entry.choices, entry.order, limits);
      better && again_part_of(better->choices) > again_part_of(entry.choices))
    open.push(std::move(*better));
  return true;
}

/// True if `entry` costs `price` or more as it is, and may cost less without recomputation: it has
/// that by a guess of its memory which nothing has corrected.
bool BudgetSearch::is_dear_as_guessed(const Entry& entry, double price) {
  if (entry.price < price || !free_.saved || lacking_.contains(lack_key(entry.choices)))
    return false;
  Choices least = entry.choices;
  set_again_part(least, 0);
  return price_of(least, estimates_->guess(least).seconds) < price;
}

/// Puts `entry` back with no more recomputation than is guessed to fit, if that is less by `least`
/// or more, and the guess below `price`: the room that others leave to transfers may be worth less.
/// Each alternative once.
void BudgetSearch::put_back_tight(const Entry& entry, double least, double price,
                                  const MemoryLimits& limits, Queue& open) {
  if (divides(limits) || put_back_tight_.contains(entry.order)) return;
  const std::optional<Choices> tight = with_least_that_fits(entry.choices, limits);
  if (!tight || again_part_of(entry.choices) - again_part_of(*tight) < least) return;
  Entry less = entry;
  less.choices = *tight;
  less.price = price_of(*tight, estimates_->guess(*tight).seconds);
  less.is_likely = true;
  if (less.price >= price) return;
  open.push(std::move(less));
  put_back_tight_.insert(entry.order);
}

/// Compiles what may be fastest, until nothing may be faster, or a step takes `enough` seconds.
std::vector<BudgetSearch::Tried> BudgetSearch::try_all(const MemoryLimits& limits, double enough) {
  Queue open;
  for (Entry& entry : guessed(limits)) open.push(std::move(entry));
  std::vector<Tried> tried;
  double best = 0;
  Closeness closeness;
  put_back_tight_.clear();
  int in_vain = 0;
  while (const std::optional<Entry> next = open.pop()) {
    const double reached = closeness.of(next->choices);
    if (!may_work()) break;
    if (!tried.empty() && is_dear_as_guessed(*next, best / reached) &&
        is_put_back(*next, limits, open))
      continue;
    if (!tried.empty() && next->price * reached >= best) {
      put_back_tight(*next, kShare, best / reached, limits, open);
      continue;
    }
    const double wear = price_of(next->choices, 1);
    if (enough > 0 && next->price / wear * reached > enough) continue;
    if (std::ranges::any_of(tried,
                            [&](const Tried& t) { return costs_more(next->choices, t.choices); }))
      continue;
    if (!next->is_likely && !may_fit(next->choices, limits)) continue;
    if (is_put_back(*next, limits, open)) continue;
    Quick quick = quickly(*next, limits);
    attempts_.push_back({next->choices, next->price / wear, {}, ""});
    if (quick.tried)
      attempts_.back().seconds = quick.tried->seconds;
    else
      attempts_.back().lacks = lacking_memory(quick.fit, own_device_);
    if (!quick.tried) {
      if (auto more = with_less_needed(*next, quick.fit, limits)) open.push(*more);
      continue;
    }
    const bool faster = tried.empty() || quick.tried->price * kNoFaster < best;
    if (faster) best = quick.tried->price;
    closeness.note(next->choices, next->price, quick.tried->price);
    put_back_tight(*next, kDearRoom, best / closeness.of(next->choices), limits, open);
    tried.push_back(std::move(*quick.tried));
    in_vain = faster ? 0 : in_vain + 1;
    if (in_vain == kPatience || tried.back().seconds <= enough) break;
  }
  return tried;
}

/// Returns the best of what was tried as a run would do it, the fastest of them polished.
std::vector<BudgetSearch::Finalist> BudgetSearch::finalists(std::vector<Tried> tried,
                                                            const MemoryLimits& limits) {
  std::ranges::stable_sort(tried, {}, &Tried::price);
  std::vector<Finalist> all;
  double best = std::numeric_limits<double>::infinity();
  for (Tried& one : tried) {
    if (all.size() == kFinalists) {
      if (one.step) seen_.push_back(std::move(*one.step));
      continue;
    }
    if (one.price > kHopeless * best) continue;
    std::optional<PlannedStep> step =
        one.step ? std::move(one.step) : fitting_step(one.choices, limits, Effort::rough);
    if (!step) continue;
    // Transfers that wait for memory may be worth more recomputation.
    const double guess = estimates_->guess(step->choices).seconds;
    const bool waits = step->forecast.step_seconds > kFarFromGuess * guess &&
                       price_of(*step) < kFarFromBest * best;
    seen_.push_back(*step);
    if (waits) step = polished(std::move(*step));
    best = std::min(best, price_of(*step));
    all.push_back({one.order, std::move(*step), waits});
  }
  // The first of the alternatives that are equally fast moves least.
  const auto by_order = [&](const Finalist& one) {
    return std::pair(price_of(one.step) > best * kNoFaster, one.order);
  };
  std::ranges::stable_sort(all, {}, by_order);
  return all;
}

std::vector<PlannedStep> BudgetSearch::fastest_ones(const MemoryLimits& limits) {
  begun_ = work();
  seen_.clear();
  std::vector<Finalist> last = finalists(try_all(limits, 0), limits);
  if (last.empty()) return {};
  for (const Finalist& one : last)
    if (one.is_polished) seen_.push_back(one.step);
  const Finalist& first = last.front();
  PlannedStep step = with_finer_part(first.step);
  const Home parameters = step.choices.parameters;
  step = with_parameters_away(std::move(step));
  const bool sent_them_away = step.choices.parameters != parameters;
  const bool is_polished = first.is_polished && step.choices == first.step.choices;
  step =
      with_less_offload(is_polished ? std::move(step) : polished(std::move(step)), sent_them_away);
  std::vector<PlannedStep> all = std::exchange(seen_, {});
  std::ranges::stable_sort(all, {}, [&](const PlannedStep& one) { return price_of(one); });
  all.insert(all.begin(), std::move(step));
  return all;
}

std::optional<PlannedStep> BudgetSearch::fastest(const MemoryLimits& limits) {
  std::vector<PlannedStep> all = fastest_ones(limits);
  if (all.empty()) return {};
  return std::move(all.front());
}

std::optional<PlannedStep> BudgetSearch::fast_enough(const MemoryLimits& limits, double seconds) {
  begun_ = work();
  std::vector<Tried> tried = try_all(limits, seconds);
  const auto is_enough = [&](const std::optional<PlannedStep>& step) {
    return step && step->forecast.step_seconds <= seconds;
  };
  std::ranges::stable_sort(tried, {}, &Tried::seconds);
  if (tried.size() > kFinalists) tried.resize(kFinalists);
  for (Tried& one : tried) {
    if (one.seconds > kHopeless * seconds) break;
    std::optional<PlannedStep> step =
        one.step ? std::move(one.step) : fitting_step(one.choices, limits, Effort::rough);
    if (step && !is_enough(step) && step->forecast.step_seconds <= kNearlyEnough * seconds)
      step = polished(std::move(*step));
    if (is_enough(step)) return step;
  }
  return {};
}

}  // namespace strata::plan
