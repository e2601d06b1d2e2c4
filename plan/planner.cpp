#include "plan/planner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/walk_down.h"

namespace strata::plan {
namespace {

using runtime::kUnlimited;
using runtime::Tier;

/// Halvings of the range of budgets, on a logarithmic scale.
constexpr int kBudgetSteps = 6;
/// Settings that are taken back in turn where guesses say that steps become faster, and the part of
/// a step by which they must say so.
constexpr int kMostTakenBack = 3;
constexpr double kNotablyFaster = 0.02;
/// Targets below the least that was found, of which so many are tried. In a model whose arenas are
/// small each is less by much.
constexpr int kMostLowered = 16;

class Planning {
 public:
  explicit Planning(const PlannerRequest& request)
      : request_(request),
        limits_(limits()),
        search_(request.search, request.asked, freedom(), request.most_work) {}

  PlannerAnswer run() {
    choose();
    take_back_what_hinders();
    answer_.attempts = search_.attempts();
    if (answer_.chosen) foresee_unlimited();
    // Records stay in host memory only as far as a limit says: with one, steps may be faster.
    if (answer_.chosen && answer_.slowdown(*answer_.chosen) < 1) answer_.unlimited = answer_.chosen;
    if (request_.strategy == Strategy::conservative && !is_fast_enough(answer_.chosen))
      choose_accepted();
    if (!is_fast_enough(answer_.chosen)) lower_what_works();
    judge();
    answer_.complete =
        answer_.complete && search_.complete() && (!untargeted_ || untargeted_->complete());
    answer_.work += search_.work() + (untargeted_ ? untargeted_->work_beside_estimates() : 0);
    if (answer_.chosen) {
      list_chosen();
      answer_.other_bits = !search_.has_bits_asked_for(answer_.chosen->choices);
    }
    explain();
    return std::move(answer_);
  }

 private:
  /// Plans within other limits what `whole` does, by a search that was asked for none of its own.
  Planning(const Planning& whole, const MemoryLimits& limits)
      : request_(whole.request_),
        limits_(limits),
        search_(whole.unasked_ ? *whole.unasked_ : whole.search_.anew()) {
    answer_.unlimited = whole.answer_.unlimited;
    answer_.smallest = whole.answer_.smallest;
  }

  [[nodiscard]] Freedom freedom() const {
    Freedom free = request_.free;
    if (request_.strategy == Strategy::conservative)
      free.farthest = std::min(free.farthest, Home::host);
    return free;
  }

  [[nodiscard]] MemoryLimits limits() const {
    const runtime::Plan& frame = request_.search.plan;
    const std::int64_t device = frame.budget_bytes[static_cast<std::size_t>(Tier::device)];
    const std::int64_t disk = request_.disk_bytes;
    const MemoryLimits target = request_.target.value_or(MemoryLimits{device, frame.host_bytes});
    const auto used = [&](std::int64_t bytes) {
      return scaled(bytes, share_of_budget(request_.strategy));
    };
    if (names_host()) return {device, std::min(frame.host_bytes, used(target.host_bytes)), disk};
    return {std::min(device, used(target.device_bytes)), frame.host_bytes, disk};
  }

  /// True if the target is one of host memory: the device is the host.
  [[nodiscard]] bool names_host() const {
    const runtime::Plan& frame = request_.search.plan;
    return request_.search.machine.host_is_device() &&
           frame.budget_bytes[static_cast<std::size_t>(Tier::device)] == kUnlimited;
  }

  /// Lists what was chosen with the time of its Programs as they are, not as rough ones.
  void list_chosen() {
    const PlannedStep& chosen = *answer_.chosen;
    auto at = std::ranges::find(answer_.attempts, chosen.choices, &Attempt::choices);
    if (at == answer_.attempts.end())
      at = answer_.attempts.insert(
          at, {chosen.choices, search_.estimates().guess(by_share_->choices).seconds, {}, ""});
    at->seconds = chosen.forecast.step_seconds;
    at->lacks.clear();
  }

  /// A device of any size beside the host's own memory.
  [[nodiscard]] MemoryLimits unlimited() const {
    if (request_.search.machine.host_is_device()) return {.disk_bytes = request_.disk_bytes};
    return {.host_bytes = request_.search.plan.host_bytes, .disk_bytes = request_.disk_bytes};
  }

  /// Returns a search that was not asked for the target, so that what it finds depends on none.
  [[nodiscard]] BudgetSearch& untargeted() {
    if (request_.strategy == Strategy::aggressive) return search_;
    if (!untargeted_) untargeted_.emplace(search_.anew());
    return *untargeted_;
  }

  void foresee_unlimited() {
    if (answer_.unlimited) return;
    answer_.unlimited = untargeted().fastest(unlimited());
    if (answer_.unlimited) answer_.unlimited = untargeted().settled(std::move(*answer_.unlimited));
  }

  [[nodiscard]] bool is_fast_enough(const std::optional<PlannedStep>& step) const {
    return step && answer_.slowdown(*step) <= most_slowdown(request_.strategy);
  }

  /// Returns the best of the steps, with actions where they make it faster, compiled in full.
  [[nodiscard]] WithActions finished(BudgetSearch& search, const std::vector<PlannedStep>& steps) {
    WithActions best = request_.strategy == Strategy::maximum
                           ? WithActions{steps.front(), steps.front()}
                           : search.with_actions(steps);
    best.step = search.settled(std::move(best.step));
    return best;
  }

  void choose(WithActions best) {
    by_share_ = std::move(best.by_share);
    answer_.chosen = std::move(best.step);
  }

  void choose() {
    switch (request_.strategy) {
      case Strategy::conservative:
      case Strategy::balanced:
        if (search_.may_fit(request_.asked, limits_))
          answer_.chosen = search_.fitting_step(request_.asked, limits_);
        by_share_ = answer_.chosen;
        answer_.is_asked = answer_.chosen.has_value();
        if (answer_.is_asked) return;
        if (const auto steps = search_.fastest_ones(limits_); !steps.empty())
          return choose(finished(search_, steps));
        return choose_smallest();  // guesses may have left out the last that fits
      case Strategy::aggressive:
        return choose_accepted();
      case Strategy::maximum:
        return choose_smallest();
    }
  }

  void choose_smallest() {
    if (!answer_.smallest) answer_.smallest = search_.smallest(limits_);
    if (smallest_fits()) choose(finished(search_, {*answer_.smallest}));
  }

  [[nodiscard]] bool smallest_has_plan() const {
    return answer_.smallest && !answer_.smallest->plan.units.empty();
  }
  [[nodiscard]] bool smallest_fits() const {
    return smallest_has_plan() && search_.fits(answer_.smallest->needs, limits_);
  }

  /// Chooses what the strategy accepts with least memory, if it fits.
  void choose_accepted() {
    foresee_unlimited();
    answer_.smallest = untargeted().smallest(unlimited());
    std::optional<PlannedStep> least = answer_.unlimited;
    if (smallest_has_plan() && is_fast_enough(answer_.smallest))
      least = answer_.smallest;
    else if (least && answer_.smallest)
      least = least_that_is_fast(std::move(*least));
    if (!least) return;
    WithActions accepted = finished(untargeted(), {*least});
    answer_.accepted = accepted.step;
    if (!search_.fits(answer_.accepted->needs, limits_)) {
      if (request_.strategy == Strategy::aggressive) unasked_.emplace(search_);
      return choose_fastest();
    }
    choose(std::move(accepted));
    answer_.is_asked = false;
  }

  /// Chooses the fastest step that fits, if none is chosen. It may be fast enough for the strategy;
  /// else a refusal names it.
  void choose_fastest() {
    if (answer_.chosen || !smallest_fits()) return;
    const PlannedStep step = search_.settled(search_.fastest(limits_).value_or(*answer_.smallest));
    choose({step, step});
  }

  /// Lowers what a refusal names as long as the strategy takes a target that is notably less: it
  /// may find a step there that no search for the least has found. Chooses the last one if it
  /// fits, so that each target that is named is taken, and none that is notably less.
  void lower_what_works() {
    const bool demands_speed = std::isfinite(most_slowdown(request_.strategy));
    std::optional<PlannedStep>& works = demands_speed ? answer_.accepted : answer_.smallest;
    if (request_.strategy == Strategy::maximum || !works || works->plan.units.empty() ||
        !search_.fits(works->needs, unlimited()))
      return;
    std::optional<WithActions> lowered;
    const auto is_taken = [&](std::int64_t target) {
      const std::optional<MemoryLimits> limits = limits_of(target);
      if (!limits || *limits == limits_) return false;  // nothing was found within these
      std::optional<WithActions> found = taken_within(*limits);
      if (!found) return false;
      works = found->step;
      lowered = std::move(found);
      return true;
    };
    const TargetTerms& terms = request_.terms;
    if (terms.most_bytes > 0 && target_of(*works) > terms.most_bytes && !is_taken(terms.most_bytes))
      return;  // no target that is there would do
    const bool is_least = walk_down([&] { return target_of(*works); }, is_taken, kMostLowered);
    answer_.complete = answer_.complete && is_least;
    if (lowered && !demands_speed) smallest_by_share_ = lowered->by_share.choices;
    if (lowered && search_.fits(works->needs, limits_)) choose(std::move(*lowered));
  }

  [[nodiscard]] std::int64_t target_of(const PlannedStep& step) const {
    return least_target(scarce_bytes(step.needs, request_.search.machine), request_.strategy,
                        request_.terms);
  }

  /// Returns what the strategy leaves arenas of a target; nullopt if that is nothing, or if no
  /// target limits them.
  [[nodiscard]] std::optional<MemoryLimits> limits_of(std::int64_t target) const {
    if (request_.search.machine.host_is_device() && !names_host()) return {};
    const std::int64_t arenas = arenas_within(target, request_.strategy, request_.terms);
    if (arenas <= 0) return {};
    MemoryLimits limits = limits_;
    (names_host() ? limits.host_bytes : limits.device_bytes) = arenas;
    return limits;
  }

  /// Returns what the strategy chooses within `limits` before it looks for the least that works;
  /// nullopt if that is nothing.
  [[nodiscard]] std::optional<WithActions> taken_within(const MemoryLimits& limits) {
    Planning within(*this, limits);
    const std::int64_t before = within.search_.work_beside_estimates();
    if (request_.strategy == Strategy::aggressive)
      within.choose_fastest();
    else
      within.choose();
    within.take_back_what_hinders();
    answer_.complete = answer_.complete && within.search_.complete();
    answer_.work += within.search_.work_beside_estimates() - before;
    if (!is_fast_enough(within.answer_.chosen)) return {};
    return WithActions{*within.by_share_, *within.answer_.chosen};
  }

  /// Returns the step with the least memory, of those that are as fast as the strategy demands:
  /// halves budgets between the least and `fastest`, which is one of them, for any such step, and
  /// returns the fastest within the least of these budgets.
  [[nodiscard]] PlannedStep least_that_is_fast(PlannedStep fastest) {
    BudgetSearch& search = untargeted();
    const auto scarce = [&](const PlannedStep& step) {
      return static_cast<double>(scarce_bytes(step.needs, request_.search.machine));
    };
    const auto within = [&](double bytes) {
      MemoryLimits tight = unlimited();
      (names_host() ? tight.host_bytes : tight.device_bytes) = std::llround(bytes);
      return tight;
    };
    const double enough = most_slowdown(request_.strategy) * fastest.forecast.step_seconds;
    double low = scarce(*answer_.smallest), high = scarce(fastest);
    PlannedStep least = std::move(fastest);
    const auto keep_if_fast = [&](std::optional<PlannedStep> step) {
      if (step) step = search.settled(std::move(*step));
      if (!is_fast_enough(step)) return false;
      least = std::move(*step);
      return true;
    };
    // Without work left nothing is found, which says nothing of the budget.
    for (int i = 0; i < kBudgetSteps && high > low * 1.02 && search.complete(); ++i) {
      const double middle = std::sqrt(low * high);
      if (keep_if_fast(search.fast_enough(within(middle), enough)))
        high = std::min(middle, scarce(least));
      else
        low = middle;
    }
    keep_if_fast(search.fastest(within(high)));
    return least;
  }

  /// Refuses what does not fit, and what is slower than the strategy allows.
  void judge() {
    if (is_fast_enough(answer_.chosen)) return;
    answer_.fitting = std::exchange(answer_.chosen, std::nullopt);
    if (answer_.fitting) {
      answer_.refusal = PlannerRefusal::too_slow;
      return;
    }
    answer_.refusal = PlannerRefusal::too_large;
    if (!answer_.smallest) answer_.smallest = search_.smallest(limits_);
    answer_.nearest = search_.nearest(limits_);
  }

  /// Says what it would do to take back each setting of what was chosen: as it was compiled, if it
  /// was, else as guessed.
  [[nodiscard]] std::vector<PricedChange> reasons() {
    const PlannedStep& chosen = *answer_.chosen;
    PriceList prices(search_.estimates(), request_.search, limits_);
    std::vector<PricedChange> all = prices.taken_back(
        {chosen.choices, by_share_->choices,
         by_share_->forecast.step_seconds - chosen.forecast.step_seconds},
        request_.asked, [&](const Choices& choices) { return search_.corrected_guess(choices); });
    for (PricedChange& reason : all)
      for (const auto& [choices, step] : taken_back_)
        if (choices == reason.choices) set_compiled(reason, step);
    return all;
  }

  void set_compiled(PricedChange& reason, const std::optional<PlannedStep>& step) const {
    const PlannedStep& chosen = *answer_.chosen;
    reason.fits = step.has_value();
    if (!step) return;
    reason.is_compiled = true;
    reason.needs = step->needs;
    reason.more = {step->needs.device - chosen.needs.device, step->needs.host - chosen.needs.host,
                   step->needs.disk - chosen.needs.disk};
    reason.seconds = step->forecast.step_seconds - chosen.forecast.step_seconds;
    reason.without_seconds = chosen.forecast.step_seconds;
  }

  /// Compiles what is guessed to fit and to be faster without one of the settings that were made,
  /// and takes it if it is: guesses may have ruled it out before others corrected them. Strategies
  /// that want the least memory would compare a step within the target with one within less.
  void take_back_what_hinders() {
    if (request_.strategy == Strategy::aggressive || request_.strategy == Strategy::maximum) return;
    for (int tries = 0; tries < kMostTakenBack && answer_.chosen && !answer_.is_asked; ++tries) {
      const std::vector<PricedChange> all = reasons();
      const auto hinders = std::ranges::find_if(all, [&](const PricedChange& reason) {
        return reason.fits && reason.slowdown() < -kNotablyFaster &&
               std::ranges::find(taken_back_, reason.choices, &TakenBack::first) ==
                   taken_back_.end();
      });
      if (hinders == all.end() || !search_.may_work()) return;
      std::optional<PlannedStep> step = search_.attempted_step(hinders->choices, limits_);
      // In full, as what was chosen is: rough Programs are slower.
      if (step) step = search_.settled(std::move(*step));
      taken_back_.emplace_back(hinders->choices, step);
      if (step && search_.price_of(*step) < search_.price_of(*answer_.chosen))
        choose(finished(search_, {*step}));
    }
  }

  [[nodiscard]] const Choices& changed_in_advice() const {
    if (!answer_.nearest) return request_.asked;
    return limits_.lacking(answer_.nearest->needs, true).device == 0 ? answer_.nearest->choices
                                                                     : request_.asked;
  }

  /// Says what each setting of the answer is for, or what a refusal could be changed by.
  void explain() {
    if (answer_.chosen && !answer_.is_asked) answer_.reasons = reasons();
    PriceList prices(search_.estimates(), request_.search, limits_);
    if (answer_.refusal != PlannerRefusal::too_large) return;
    answer_.changes = prices.single_changes(changed_in_advice(), request_.farthest_told);
    if (answer_.nearest && limits_.lacking(answer_.nearest->needs, true).disk > 0)
      answer_.changes.clear();  // they save memory, and drives are short
    if (answer_.smallest)
      answer_.forbidden = prices.forbidden(request_.asked, freedom(),
                                           smallest_by_share_.value_or(answer_.smallest->choices));
  }

  const PlannerRequest& request_;
  MemoryLimits limits_;
  BudgetSearch search_;
  std::optional<BudgetSearch> untargeted_;
  std::optional<BudgetSearch> unasked_;  ///< of `aggressive`, before it was asked for its target
  PlannerAnswer answer_;
  std::optional<PlannedStep> by_share_;       ///< what was chosen before it got actions
  std::optional<Choices> smallest_by_share_;  ///< likewise of the smallest, if it was lowered
  using TakenBack = std::pair<Choices, std::optional<PlannedStep>>;
  std::vector<TakenBack> taken_back_;  ///< what was compiled without one setting, if it fits
};

}  // namespace

double PlannerAnswer::slowdown(const PlannedStep& step) const {
  if (!unlimited) return 1;
  return step.forecast.step_seconds / unlimited->forecast.step_seconds;
}

PlannerAnswer plan_for_budget(const PlannerRequest& request) { return Planning(request).run(); }

}  // namespace strata::plan
