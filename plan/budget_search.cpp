// Compiles choices under memory limits, and says what its searches may use.
#include "plan/budget_search.h"

#include <algorithm>
#include <utility>

#include "compile/safe_programs.h"
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

}  // namespace

BudgetSearch::BudgetSearch(const Search& search, const Choices& asked, const Freedom& free,
                           std::int64_t most_work)
    : search_(search),
      free_(free),
      own_device_(!search.machine.host_is_device()),
      asked_(asked),
      most_work_(most_work),
      estimates_(std::make_shared<StepEstimates>(search, asked)),
      all_(alternatives(asked, free, search.plan, own_device_)) {
  step::require_none(estimates_->problems(asked));
  std::erase_if(all_,
                [&](const Choices& choices) { return !estimates_->problems(choices).empty(); });
}

BudgetSearch BudgetSearch::anew() const {
  BudgetSearch fresh = *this;
  fresh.compiled_ = 0;
  fresh.unasked_ = fresh.begun_ = fresh.work();
  fresh.attempts_.clear();
  fresh.lacking_.clear();
  fresh.least_lacking_.clear();
  fresh.complete_ = true;
  return fresh;
}

bool BudgetSearch::may_work() {
  const bool may = work() - begun_ < most_work_ && work() - unasked_ < kWholeSearches * most_work_;
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
  const auto beyond = [](std::int64_t bytes, std::int64_t limit) -> std::int64_t {
    return bytes > limit ? bytes - limit : 0;  // the difference of a guess below 0 may overflow
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

BudgetSearch::Made BudgetSearch::made(const Choices& choices, const MemoryLimits& limits,
                                      compile::Effort effort) {
  compile::Compiled found = find_programs(choices, limits, effort);
  Made made{{}, std::move(found.fit)};
  if (!made.fit.fits()) return made;
  if (effort == compile::Effort::full) compile::require_safe(found.programs);
  PlannedStep step = planned(choices, limits, found);
  if (step.needs.disk <= limits.disk_bytes) made.step = std::move(step);
  return made;
}

std::optional<PlannedStep> BudgetSearch::fitting_step(const Choices& choices,
                                                      const MemoryLimits& limits,
                                                      compile::Effort effort) {
  return made(choices, limits, effort).step;
}

PlannedStep BudgetSearch::settled(PlannedStep step) {
  if (step.plan.units.empty() || std::exchange(step.is_settled, true)) return step;
  const compile::Compiled made =
      compile::compile(search_.model, step.plan, search_.machine, widest_seat(search_.where));
  compiled_ += made.work;
  if (made.fit.fits()) compile::require_safe(made.programs);
  std::optional<PlannedStep> full;
  if (made.fit.fits()) full = planned(step.choices, step.limits, made);
  if (!full || full->needs.disk > step.limits.disk_bytes)
    full = fitting_step(step.choices, step.limits);
  if (!full) return step;
  full->is_settled = true;
  return std::move(*full);
}

/// Compiles as a run would, and lists that among the attempts.
std::optional<PlannedStep> BudgetSearch::attempted(const Choices& choices,
                                                   const MemoryLimits& limits,
                                                   double guessed_seconds) {
  Made tried = made(choices, limits, compile::Effort::rough);
  attempts_.push_back({choices, guessed_seconds, {}, ""});
  if (tried.step) {
    attempts_.back().seconds = tried.step->forecast.step_seconds;
    seen_.push_back(*tried.step);
  } else {
    attempts_.back().lacks = lacking_memory(tried.fit, own_device_);
  }
  return std::move(tried.step);
}

std::string lacking_memory(const compile::Fit& fit, bool own_device) {
  if (fit.fits()) return "room on drives";
  if (!own_device) return "host memory";  // which the device's is a part of
  const auto fits = [&](Tier tier) { return fit.tiers[static_cast<std::size_t>(tier)].fits(); };
  const bool host =
      fit.kept_too_much || !fit.host.fits() || !fits(Tier::pinned) || !fits(Tier::pageable);
  if (!host) return "device memory";
  return fits(Tier::device) ? "host memory" : "device or host memory";
}

std::int64_t scarce_bytes(const MemoryNeeds& needs, const machine::Machine& machine) {
  return machine.host_is_device() ? needs.device + needs.host : needs.device;
}

std::int64_t scaled(std::int64_t bytes, double factor) {
  if (bytes == kUnlimited) return bytes;
  return static_cast<std::int64_t>(static_cast<double>(bytes) * factor);
}

}  // namespace strata::plan
