#include "plan/reasons.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "plan/held_part.h"
#include "plan/neighbours.h"

namespace strata::plan {
namespace {

constexpr Setting kSettings[] = {Setting::stage,       Setting::micro_batch, Setting::saved,
                                 Setting::activations, Setting::parameters,  Setting::optimizer,
                                 Setting::order,       Setting::sums,        Setting::farthest,
                                 Setting::all};

/// Slowdowns below this cannot be told from none.
constexpr double kLeastSlowdown = 0.0005;
/// Smaller savings than this part of the memory do not count, since guesses are wrong by as much.
constexpr double kNotablyLess = 0.01;

/// Gives `choices` the value that `asked` has for the setting.
void take_back(Setting setting, const Choices& asked, Choices& choices) {
  switch (setting) {
    case Setting::stage:
      choices.sharding.stage = asked.sharding.stage;
      break;
    case Setting::micro_batch:
      choices.micro_batch = asked.micro_batch;
      choices.micro_steps = asked.micro_steps;
      // A single micro-step has no order, and adds nothing up.
      if (choices.micro_steps == 1) {
        choices.layer_major = asked.layer_major;
        choices.sums_away = asked.sums_away;
      }
      break;
    case Setting::saved:
      choices.again = asked.again;
      choices.again_part = asked.again_part;
      choices.layer_runs = asked.layer_runs;
      choices.actions = asked.actions;
      break;
    case Setting::activations:
      choices.activations = asked.activations;
      break;
    case Setting::parameters:
      choices.parameters = asked.parameters;
      break;
    case Setting::optimizer:
      choices.optimizer = asked.optimizer;
      choices.optimizer_part = asked.optimizer_part;
      if (choices.optimizer == Home::device) choices.sums_away = asked.sums_away;
      break;
    case Setting::order:
      choices.layer_major = asked.layer_major;
      break;
    case Setting::sums:
      choices.sums_away = asked.sums_away;
      break;
    case Setting::farthest:  // no choice, but what some may be
    case Setting::all:
      break;
  }
}

/// Frees the setting; false if it is free, or if all are to be freed and a single one is not free.
bool set_free(Setting setting, Freedom& free) {
  if (setting == Setting::all)
    return std::ranges::count_if(kSettings, [&](Setting one) {
             return one != Setting::all && set_free(one, free);
           }) > 1;
  if (setting == Setting::farthest) return std::exchange(free.farthest, Home::disk) != Home::disk;
  bool* const kinds[] = {&free.stage,      &free.micro_batch, &free.saved, &free.activations,
                         &free.parameters, &free.optimizer,   &free.order, &free.sums};
  return !std::exchange(*kinds[static_cast<std::size_t>(setting)], true);
}

bool needs_no_more(const MemoryNeeds& more) {
  return more.device <= 0 && more.host <= 0 && more.disk <= 0;
}

}  // namespace

std::string_view name_of(Setting setting) {
  constexpr std::string_view kNames[] = {"stage",      "micro_batch", "saved", "activations",
                                         "parameters", "optimizer",   "order", "sums",
                                         "farthest",   "all"};
  return kNames[static_cast<std::size_t>(setting)];
}

double PricedChange::slowdown() const {
  return without_seconds > 0 ? seconds / without_seconds : 0;
}

PriceList::PriceList(StepEstimates& estimates, const Search& search, const MemoryLimits& limits)
    : estimates_(estimates),
      search_(search),
      limits_(limits),
      own_device_(!search.machine.host_is_device()) {}

bool PriceList::lacks_host_memory(const MemoryNeeds& needs) const {
  return own_device_ && needs.host > limits_.host_bytes;
}

bool PriceList::fits(const MemoryNeeds& needs) const { return limits_.hold(needs, own_device_); }

std::int64_t PriceList::scarce(const MemoryNeeds& needs, bool host_is_short) const {
  return host_is_short ? needs.host : scarce_bytes(needs, search_.machine);
}

PricedChange PriceList::priced(Setting setting, const Choices& choices,
                               const StepEstimate& without) {
  PricedChange change{.setting = setting, .choices = choices};
  change.contradicts = !estimates_.problems(choices).empty();
  if (change.contradicts) {
    change.fits = false;
    return change;
  }
  set_price(change, estimates_.guess(choices), without);
  return change;
}

void PriceList::set_price(PricedChange& change, const StepEstimate& with,
                          const StepEstimate& without) const {
  change.needs = with.needs;
  change.more = {with.needs.device - without.needs.device, with.needs.host - without.needs.host,
                 with.needs.disk - without.needs.disk};
  change.seconds = with.seconds - without.seconds;
  change.without_seconds = without.seconds;
  change.fits = fits(with.needs);
}

std::vector<PricedChange> PriceList::taken_back(
    const ChosenStep& step, const Choices& asked,
    const std::function<MemoryNeeds(const Choices&)>& corrected) {
  const bool has_actions = step.choices.actions != asked.actions;
  const StepEstimate with_all = estimates_.guess(step.by_share);
  std::vector<PricedChange> reasons;
  for (const Setting setting : kSettings) {
    Choices less = step.choices, guessed = step.by_share;
    take_back(setting, asked, less);
    if (less == step.choices) continue;
    take_back(setting, asked, guessed);
    const bool gives_up_actions = has_actions && setting == Setting::saved;
    if (gives_up_actions) take_back(Setting::activations, asked, guessed);
    PricedChange reason = priced(setting, guessed, with_all);
    reason.choices = less;
    if (gives_up_actions) reason.seconds += step.gained_seconds;
    // The step that was chosen fits, whatever its guess says.
    reason.fits = !reason.contradicts && (needs_no_more(reason.more) || fits(corrected(guessed)));
    reasons.push_back(std::move(reason));
  }
  return reasons;
}

/// Returns `choices` with as much of the optimizer's state off the device as host memory and drives
/// hold; as they are if they hold all or nothing of it.
Choices PriceList::with_all_held(const Choices& choices) const {
  if (!own_device_ || !estimates_.problems(choices).empty()) return choices;
  return with_less_held(choices, [&](const Choices& some) { return hold_beside(some); })
      .value_or(choices);
}

/// Lists a step of each setting that may save memory, and the whole way where there is more of it.
std::vector<std::pair<Setting, Choices>> PriceList::listed_changes(const Choices& asked,
                                                                   Home farthest) const {
  std::vector<std::pair<Setting, Choices>> all;
  const auto changed = [&](Setting setting) -> Choices& {
    return all.emplace_back(setting, asked).second;
  };
  if (search_.plan.data_ranks() > 1 && asked.sharding.stage < zero::kHighestStage)
    ++changed(Setting::stage).sharding.stage;
  if (asked.micro_batch > 1) {
    Choices& smaller = changed(Setting::micro_batch);
    set_micro_batch(smaller, next_smaller_micro_batch(asked.micro_batch));
  }
  const bool is_open = asked.actions.empty();
  if (is_open && asked.layer_runs == 0) {
    constexpr double kQuarter = 0.25;  // between quarters, guesses are a straight line
    const double next = kQuarter * (1 + std::floor(again_part_of(asked) / kQuarter));
    for (const double part : std::set<double>{next, 1})
      if (part <= 1) set_again_part(changed(Setting::saved), part);
  }
  for (const Home home : {Home::host, Home::disk}) {
    if (home > farthest) break;
    if (home == Home::host && !own_device_) continue;  // it is the device's memory
    if (is_open && home > asked.activations) changed(Setting::activations).activations = home;
    if (home > asked.parameters) changed(Setting::parameters).parameters = home;
    const bool moves_more = home == asked.optimizer && asked.optimizer_part < 1;
    if (home <= asked.optimizer && !moves_more) continue;
    Choices away = asked;
    away.optimizer = home;
    away.optimizer_part = 1;
    away = with_all_held(away);
    const bool moves_less = home == asked.optimizer && away.optimizer_part <= asked.optimizer_part;
    if (!moves_less) changed(Setting::optimizer) = away;
  }
  if (!asked.layer_major && asked.micro_steps > 1 && search_.plan.virtual_ranks == 0)
    changed(Setting::order).layer_major = true;
  if (own_device_ && asked.adds_sums_up() && !asked.sums_away && asked.optimizer != Home::device)
    changed(Setting::sums).sums_away = true;
  return all;
}

bool PriceList::overfills_another(const MemoryNeeds& needs, const MemoryNeeds& more,
                                  bool host_is_short) const {
  const MemoryNeeds lacking = limits_.lacking(needs, own_device_);
  const bool device = host_is_short && lacking.device > 0 && more.device > 0;
  const bool host = own_device_ && lacking.host > 0 && more.host > 0;
  return device || host || (lacking.disk > 0 && more.disk > 0);
}

std::vector<PricedChange> PriceList::single_changes(const Choices& asked, Home farthest) {
  const StepEstimate now = estimates_.guess(asked);
  const bool host_is_short =
      lacks_host_memory(now.needs) && now.needs.device <= limits_.device_bytes;
  std::vector<std::pair<double, PricedChange>> saving;  // with the bytes for a part of the time
  for (const auto& [setting, choices] : listed_changes(asked, farthest)) {
    PricedChange change = priced(setting, choices, now);
    const std::int64_t saved = -scarce(change.more, host_is_short);
    const MemoryNeeds with{now.needs.device + change.more.device, now.needs.host + change.more.host,
                           now.needs.disk + change.more.disk};
    if (change.contradicts || overfills_another(with, change.more, host_is_short) ||
        saved <= scaled(scarce(now.needs, host_is_short), kNotablyLess))
      continue;
    const double price = std::max(change.slowdown(), kLeastSlowdown);
    saving.emplace_back(static_cast<double>(saved) / price, std::move(change));
  }
  std::ranges::stable_sort(saving, std::ranges::greater{}, &std::pair<double, PricedChange>::first);
  std::vector<PricedChange> changes;
  for (auto& [gain, change] : saving) changes.push_back(std::move(change));
  return changes;
}

std::int64_t PriceList::lacking_beside(const MemoryNeeds& needs) const {
  const MemoryNeeds lacking = limits_.lacking(needs, own_device_);
  return lacking.disk + (own_device_ ? lacking.host : 0);
}

/// True if host memory and drives are guessed to hold what `choices` need.
bool PriceList::hold_beside(const Choices& choices) const {
  return lacking_beside(estimates_.guess(choices).needs) == 0;
}

/// True if `needs` lack notably less of host memory and drives than `least`, or lack nothing there,
/// as it does, and are notably less of the memory that a target names.
bool PriceList::is_less(const MemoryNeeds& needs, const MemoryNeeds& least) const {
  const std::int64_t lacking = lacking_beside(needs), most = lacking_beside(least);
  if (most > 0)
    return lacking == 0 || lacking < most - scaled(least.host + least.disk, kNotablyLess);
  return lacking == 0 && scarce_bytes(needs, search_.machine) <
                             scaled(scarce_bytes(least, search_.machine), 1 - kNotablyLess);
}

/// Returns those of the alternatives that are guessed to need least, if that is less than `than`.
std::optional<Choices> PriceList::smallest_of(const Choices& asked, const Freedom& free,
                                              const Choices& than) {
  MemoryNeeds least = estimates_.guess(than).needs;
  std::optional<Choices> best;
  for (Choices& choices : alternatives(asked, free, search_.plan, own_device_)) {
    if (free.saved) set_again_part(choices, 1);
    if (!estimates_.problems(choices).empty()) continue;
    if (own_device_ && free.optimizer)
      choices = with_held_part(choices, [&](const Choices& some) { return hold_beside(some); });
    const MemoryNeeds needs = estimates_.guess(choices).needs;
    if (!is_less(needs, least)) continue;
    least = needs;
    best = std::move(choices);
  }
  return best;
}

/// Compiles `choices` without a schedule, with less of the optimizer's state off the device where
/// host memory or drives turn out to hold less than was guessed.
std::optional<StepEstimate> PriceList::held_bound(Choices& choices, const Freedom& free) {
  const std::optional<StepEstimate> bound = estimates_.bound(choices);
  if (!bound || !own_device_ || !free.optimizer || lacking_beside(bound->needs) == 0) return bound;
  const MemoryNeeds guess = estimates_.guess(choices).needs;
  const auto hold = [&](const Choices& some) {
    MemoryNeeds needs = estimates_.guess(some).needs;
    needs.host += bound->needs.host - guess.host;
    needs.disk += bound->needs.disk - guess.disk;
    return lacking_beside(needs) == 0;
  };
  const std::optional<Choices> held = with_less_held(choices, hold);
  if (!held) return bound;
  choices = *held;
  return estimates_.bound(choices);
}

std::vector<PricedChange> PriceList::forbidden(const Choices& asked, const Freedom& free,
                                               const Choices& smallest) {
  const bool has_actions = !asked.actions.empty();
  const std::optional<StepEstimate> least = estimates_.bound(smallest);
  if (!least) return {};
  MemoryNeeds best = least->needs;  // of what a single setting forbids
  std::vector<PricedChange> found;
  for (const Setting setting : kSettings) {
    Freedom freer = free;
    if (!set_free(setting, freer)) continue;
    if (has_actions && setting == Setting::activations) continue;  // actions say where they are
    Choices from = asked;
    if (has_actions && freer.saved) {
      from.actions.clear();
      freer.activations = true;
    }
    std::optional<Choices> less = smallest_of(from, freer, smallest);
    if (!less) continue;
    const std::optional<StepEstimate> bound = held_bound(*less, freer);
    // All of them come last.
    if (!bound || !is_less(bound->needs, setting == Setting::all ? best : least->needs)) continue;
    if (is_less(bound->needs, best)) best = bound->needs;
    set_price(found.emplace_back(PricedChange{.setting = setting, .choices = *less}), *bound,
              *least);
  }
  return found;
}

}  // namespace strata::plan
