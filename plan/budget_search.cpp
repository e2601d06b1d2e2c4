// Compiles choices under memory limits, and searches for those that need least memory.
#include "plan/budget_search.h"

#include <algorithm>
#include <utility>

#include "plan/budget_entry.h"
#include "plan/disk_writes.h"
#include "plan/widest_seat.h"

namespace strata::plan {
namespace {

using runtime::kUnlimited;
using runtime::Tier;

/// Steps that write to a drive must be faster by more than this than those that do not.
constexpr double kWear = 1.05;
/// Steps that give other bits than those asked for must be faster by more than this: rates that are
/// measured differ from one start to the next.
constexpr double kOtherBits = 1.02;
/// Searches that may use all of their work, of all searches for one answer.
constexpr std::int64_t kWholeSearches = 3;
/// Choices that are estimated to be small, of which the smallest is found by compiling.
constexpr std::size_t kSmallOnes = 6;
/// The part by which memory that few layers tell may be wrong (LayerSamples).
constexpr double kErrorOfFewLayers = 0.01;

}  // namespace

BudgetSearch::BudgetSearch(const Search& search, const Choices& asked, const Freedom& free,
                           std::int64_t most_work)
    : search_(search),
      free_(free),
      own_device_(!search.machine.host_is_device()),
      asked_(asked),
      most_work_(most_work),
      estimates_(search, asked),
      all_(alternatives(asked, free, search.plan, own_device_)) {
  step::require_none(estimates_.problems(asked));
  std::erase_if(all_,
                [&](const Choices& choices) { return !estimates_.problems(choices).empty(); });
}

std::int64_t BudgetSearch::work() const { return estimates_.work() + compiled_; }

bool BudgetSearch::may_work() {
  const bool may = work() - begun_ < most_work_ && work() < kWholeSearches * most_work_;
  complete_ = complete_ && may;
  return may;
}

double BudgetSearch::price_of(const Choices& choices, double seconds) const {
  if (choices.uses(Home::disk)) seconds *= kWear;
  return has_bits_asked_for(choices) ? seconds : seconds * kOtherBits;
}

bool BudgetSearch::has_bits_asked_for(const Choices& choices) const {
  const int ranks = std::max(search_.plan.data_ranks(), search_.plan.virtual_ranks);
  return give_equal_bits(choices, asked_, ranks);
}

double BudgetSearch::price_of(const PlannedStep& step) const {
  return price_of(step.choices, step.forecast.step_seconds);
}

bool MemoryLimits::hold(const MemoryNeeds& needs, bool own_device) const {
  return all_bytes(lacking(needs, own_device)) == 0;
}

MemoryNeeds MemoryLimits::lacking(const MemoryNeeds& needs, bool own_device) const {
  const std::int64_t host =
      needs.host + (!own_device && device_bytes == kUnlimited ? needs.device : 0);
  const auto beyond = [](std::int64_t bytes, std::int64_t limit) {
    return std::max<std::int64_t>(0, bytes - limit);
  };
  return {beyond(needs.device, device_bytes), beyond(host, host_bytes),
          beyond(needs.disk, disk_bytes)};
}

bool BudgetSearch::fits(const MemoryNeeds& needs, const MemoryLimits& limits) const {
  return limits.hold(needs, own_device_);
}

runtime::Plan BudgetSearch::limited(const Choices& choices, const MemoryLimits& limits) const {
  runtime::Plan plan = search_.plan;
  plan.budget_bytes[static_cast<std::size_t>(Tier::device)] = limits.device_bytes;
  plan.host_bytes = limits.host_bytes;
  return with_choices(std::move(plan), choices, search_.model.build);
}

compile::Compiled BudgetSearch::find_programs(const Choices& choices, const MemoryLimits& limits,
                                              compile::Effort effort) {
  Search search = search_;
  search.plan = limited(choices, limits);
  search.where = widest_seat(search.where);
  search.accepts = {};
  search.effort = effort;
  compile::Compiled found = find_plan(search);
  compiled_ += found.work;
  return found;
}

PlannedStep BudgetSearch::planned(const Choices& choices, const MemoryLimits& limits,
                                  const compile::Compiled& found) const {
  return {choices,
          limits,
          memory_needs(found.programs),
          foresee(found.programs, search_.machine),
          found.programs.settings.plan,
          bytes_written_per_step(found.programs)};
}

std::optional<PlannedStep> BudgetSearch::fitting_step(const Choices& choices,
                                                      const MemoryLimits& limits,
                                                      compile::Effort effort) {
  const compile::Compiled found = find_programs(choices, limits, effort);
  if (!found.fit.fits()) return {};
  PlannedStep step = planned(choices, limits, found);
  if (step.needs.disk > limits.disk_bytes) return {};
  return step;
}

PlannedStep BudgetSearch::settled(PlannedStep step) {
  if (step.plan.units.empty()) return step;
  const compile::Compiled made =
      compile::compile(search_.model, step.plan, search_.machine, widest_seat(search_.where));
  compiled_ += made.work;
  if (made.fit.fits()) return planned(step.choices, step.limits, made);
  return fitting_step(step.choices, step.limits).value_or(std::move(step));
}

/// Compiles as a run would, and lists that among the attempts.
std::optional<PlannedStep> BudgetSearch::attempted(const Choices& choices,
                                                   const MemoryLimits& limits,
                                                   double guessed_seconds) {
  std::optional<PlannedStep> step = fitting_step(choices, limits, compile::Effort::rough);
  attempts_.push_back({choices, guessed_seconds, {}, ""});
  if (step)
    attempts_.back().seconds = step->forecast.step_seconds;
  else
    attempts_.back().lacks = own_device_ ? "device memory" : "host memory";
  return step;
}

std::optional<PlannedStep> BudgetSearch::smallest(const MemoryLimits& limits) {
  // Where drives, and the memory of a host that is not the device, suffice, the device counts.
  const auto rank_of = [&](const MemoryNeeds& needs) {
    const MemoryNeeds lacking = limits.lacking(needs, own_device_);
    return std::pair(lacking.disk + (own_device_ ? lacking.host : 0),
                     scarce_bytes(needs, search_.machine));
  };
  const std::optional<Entry> least =
      least_bound(rank_of, [&](const Choices& choices) { return estimates_.guess(choices).needs; });
  if (!least) return {};
  if (std::optional<PlannedStep> refused = smallest_of_refusal(*least, limits)) return refused;
  return scheduled_smallest(*least, limits);
}

std::optional<PlannedStep> BudgetSearch::nearest(const MemoryLimits& limits) {
  if (!own_device_) return {};
  const auto rank_of = [&](const MemoryNeeds& needs) {
    const MemoryNeeds lacking = limits.lacking(needs, own_device_);
    const int short_ones = (lacking.device > 0) + (lacking.host > 0) + (lacking.disk > 0);
    return std::tuple(short_ones, all_bytes(lacking), needs.device);
  };
  const std::optional<Entry> least =
      least_bound(rank_of, [&](const Choices& choices) { return corrected_guess(choices); });
  if (!least) return {};
  const std::optional<StepEstimate> scheduled = estimates_.least_scheduled(least->choices);
  PlannedStep step{.choices = least->choices, .needs = scheduled ? scheduled->needs : least->least};
  step.forecast.step_seconds = least->price / price_of(least->choices, 1);
  return step;
}

template <typename RankOf, typename NeedsOf>
std::optional<BudgetSearch::Entry> BudgetSearch::least_bound(const RankOf& rank_of,
                                                             const NeedsOf& needs_of) {
  std::vector<Entry> small;
  for (Choices choices : all_) {
    if (free_.saved) set_again_part(choices, 1);
    small.push_back({.choices = choices, .least = needs_of(choices)});
  }
  std::ranges::stable_sort(small, {}, [&](const Entry& entry) { return rank_of(entry.least); });
  if (small.size() > kSmallOnes) small.resize(kSmallOnes);
  std::optional<Entry> least;
  for (Entry& entry : small) {
    const std::optional<StepEstimate> bound = estimates_.bound(entry.choices);
    if (!bound || (least && rank_of(bound->needs) >= rank_of(least->least))) continue;
    entry.least = bound->needs;
    entry.price = price_of(entry.choices, bound->seconds);
    least = entry;
  }
  return least;
}

/// Returns what a schedule of `least` needs, as a few layers tell; nullopt unless even without a
/// schedule it surely does not fit.
std::optional<PlannedStep> BudgetSearch::smallest_of_refusal(const Entry& least,
                                                             const MemoryLimits& limits) {
  if (!own_device_ || scaled(least.least.device, 1 - kErrorOfFewLayers) <= limits.device_bytes)
    return {};
  const std::optional<StepEstimate> scheduled = estimates_.least_scheduled(least.choices);
  if (!scheduled) return {};
  PlannedStep step{.choices = least.choices, .needs = least.least};
  step.needs.device = scaled(scheduled->needs.device, 1 + kErrorOfFewLayers);
  step.forecast.step_seconds = least.price / price_of(least.choices, 1);
  return step;
}

/// Compiles `least` with the least memory that its schedules need; if there is none, what it needs
/// without a schedule is the answer.
PlannedStep BudgetSearch::scheduled_smallest(const Entry& least, const MemoryLimits& limits) {
  MemoryLimits tight = limits;
  std::int64_t& scarce = own_device_ ? tight.device_bytes : tight.host_bytes;
  scarce = scarce_bytes(least.least, search_.machine);
  if (own_device_) tight.host_bytes = std::max(tight.host_bytes, least.least.host);
  constexpr int kTries = 8;  // schedules of several Programs raise it one after another
  for (int tries = 0; tries < kTries; ++tries) {
    const compile::Compiled found = find_programs(least.choices, tight, compile::Effort::full);
    if (found.fit.fits()) return planned(least.choices, tight, found);
    const std::optional<runtime::Shortage>& shortage = found.fit.shortage;
    const bool told = own_device_ && shortage && shortage->tier == Tier::device;
    scarce = std::max(scaled(scarce, 1.01), told ? shortage->floor_bytes : 0);
  }
  PlannedStep step{.choices = least.choices, .needs = least.least};
  step.forecast.step_seconds = least.price / price_of(least.choices, 1);
  return step;
}

std::int64_t scarce_bytes(const MemoryNeeds& needs, const machine::Machine& machine) {
  return machine.host_is_device() ? needs.device + needs.host : needs.device;
}

std::int64_t scaled(std::int64_t bytes, double factor) {
  if (bytes == kUnlimited) return bytes;
  return static_cast<std::int64_t>(static_cast<double>(bytes) * factor);
}

}  // namespace strata::plan
