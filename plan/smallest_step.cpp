// Searches for the step that needs least memory, and for the one that comes nearest to limits.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "plan/budget_entry.h"
#include "plan/walk_down.h"

namespace strata::plan {
namespace {

using runtime::Tier;

/// Choices that are estimated to be small, of which the smallest is found by compiling.
constexpr std::size_t kSmallOnes = 6;
/// Choices of each kind (KindOfSums) that are compiled at least: guesses of different kinds are
/// wrong by different factors.
constexpr int kOfEachKind = 2;
/// Choices whose other memories may suffice, of which at most so many are compiled for that.
constexpr std::size_t kMostBounds = 64;
/// Of these, the ones that are scheduled: another one may need less with a schedule than without.
constexpr std::size_t kMostScheduled = 4;
/// The part by which guesses of other memories may be too large.
constexpr double kErrorOfGuesses = 0.05;
/// Budgets that are tried for a schedule: several Programs raise the least one after another.
constexpr int kMostBudgets = 8;

/// The order of micro-steps, and whether sums of gradients wait off the device between them.
using KindOfSums = std::pair<bool, bool>;
KindOfSums kind_of(const Choices& choices) { return {choices.layer_major, choices.sums_away}; }

/// The bytes that guesses lacked, as compiling showed: of stage 3 all that is gathered for a
/// moment.
class Shortfalls {
 public:
  void note(const Choices& choices, std::int64_t lacked) {
    of_alike_.try_emplace(alike(choices), lacked);
    const auto at = of_stage_.try_emplace(stage_of(choices), lacked).first;
    at->second = std::min(at->second, lacked);
  }
  /// Returns what a guess of alike choices lacked; 0 if it was enough, or if none was compiled.
  [[nodiscard]] std::int64_t known(const Choices& choices) const {
    const auto at = of_alike_.find(alike(choices));
    return at == of_alike_.end() ? 0 : std::max<std::int64_t>(0, at->second);
  }
  /// Returns the same; where no alike choices were compiled, the least that guesses of their stage
  /// and order lacked.
  [[nodiscard]] std::int64_t likely(const Choices& choices) const {
    if (of_alike_.contains(alike(choices))) return known(choices);
    const auto at = of_stage_.find(stage_of(choices));
    return at == of_stage_.end() ? 0 : std::max<std::int64_t>(0, at->second);
  }

 private:
  /// The choices by which shortfalls differ. Others, as between host memory and a drive, change a
  /// guess and what is needed by the same bytes.
  using Alike = std::tuple<int, bool, std::int64_t, bool, bool, bool, bool>;
  static Alike alike(const Choices& choices) {
    return {choices.sharding.stage,
            choices.layer_major,
            choices.micro_batch,
            choices.sums_away,
            choices.optimizer != Home::device,
            choices.parameters != Home::device,
            choices.activations != Home::device};
  }
  using Stage = std::pair<int, bool>;
  static Stage stage_of(const Choices& choices) {
    return {choices.sharding.stage, choices.layer_major};
  }

  std::map<Alike, std::int64_t> of_alike_;
  std::map<Stage, std::int64_t> of_stage_;
};

}  // namespace

/// Choices with what they need.
struct BudgetSearch::Small {
  Entry entry;                           ///< without a schedule
  std::optional<MemoryNeeds> scheduled;  ///< with one, as a few layers tell; absent: unknown

  [[nodiscard]] const MemoryNeeds& needs() const { return scheduled ? *scheduled : entry.least; }
};

BudgetSearch::LeastRank BudgetSearch::least_rank(const MemoryNeeds& needs,
                                                 const MemoryLimits& limits) const {
  const MemoryNeeds lacking = limits.lacking(needs, own_device_);
  return {lacking.disk + (own_device_ ? lacking.host : 0), scarce_bytes(needs, search_.machine)};
}

/// Returns `all` with as much recomputation as may be, and what `needs_of` says that they need,
/// those first that `rank_of` puts first.
template <typename NeedsOf, typename RankOf>
std::vector<BudgetSearch::Entry> BudgetSearch::small_guesses(const std::vector<Choices>& all,
                                                             const NeedsOf& needs_of,
                                                             const RankOf& rank_of) const {
  std::vector<Entry> guessed;
  for (Choices choices : all) {
    if (free_.saved) set_again_part(choices, 1);
    guessed.push_back({.choices = choices, .least = needs_of(choices)});
  }
  std::ranges::stable_sort(guessed, {}, [&](const Entry& one) { return rank_of(one.least); });
  return guessed;
}

/// Returns what is known of choices that have no Plan.
PlannedStep BudgetSearch::without_plan(const Entry& entry, const MemoryNeeds& needs) const {
  PlannedStep step{.choices = entry.choices, .needs = needs};
  step.forecast.step_seconds = entry.price / price_of(entry.choices, 1);
  return step;
}

/// Returns what small choices need without a schedule, those first that need least. Guesses tell
/// which ones may be small, with what those of choices like them lacked; those of drives and host
/// memory are trusted only where they are far off, so that the choices for larger ones are among
/// those that are tried for smaller ones.
std::vector<BudgetSearch::Entry> BudgetSearch::small_bounds(const MemoryLimits& limits) {
  MemoryLimits wide = limits;
  wide.host_bytes = scaled(limits.host_bytes, 1 + kErrorOfGuesses);
  wide.disk_bytes = scaled(limits.disk_bytes, 1 + kErrorOfGuesses);
  const auto guess = [&](const Choices& choices) { return estimates_->guess(choices).needs; };
  const auto guessed_rank = [&](const MemoryNeeds& needs) { return least_rank(needs, wide); };
  const auto rank = [&](const Entry& entry) { return least_rank(entry.least, limits); };
  std::vector<Entry> bounds, open = small_guesses(held_alternatives(limits), guess, guessed_rank);
  std::size_t holding = 0;
  std::map<KindOfSums, int> of_kind;  // that are guessed to suffice
  Shortfalls lacked;
  LeastRank least;
  const auto is_decided = [&](const Entry& entry) {
    const auto [lacking, scarce] = guessed_rank(entry.least);
    if (lacking > 0) return holding > 0 || bounds.size() >= kSmallOnes;
    return holding >= kSmallOnes && scarce + lacked.known(entry.choices) >= least.second &&
           of_kind[kind_of(entry.choices)] >= kOfEachKind;
  };
  const auto likely_rank = [&](const Entry& entry) {
    const auto [lacking, scarce] = guessed_rank(entry.least);
    return LeastRank{lacking, scarce + lacked.likely(entry.choices)};
  };
  while (bounds.size() < kMostBounds) {
    std::erase_if(open, is_decided);
    if (open.empty()) break;
    const auto next = std::ranges::min_element(open, {}, likely_rank);
    Entry entry = std::move(*next);
    open.erase(next);
    const auto [lacking, scarce] = guessed_rank(entry.least);
    const Choices guessed = entry.choices;
    if (!set_held_bound(entry, limits)) continue;
    if (entry.choices == guessed) lacked.note(guessed, rank(entry).second - scarce);
    if (lacking == 0) ++of_kind[kind_of(entry.choices)];
    if (rank(entry).first == 0) ++holding;
    least = bounds.empty() ? rank(entry) : std::min(least, rank(entry));
    bounds.push_back(std::move(entry));
  }
  std::ranges::stable_sort(bounds, {}, rank);
  return bounds;
}

/// Returns the least of the small choices by what schedules of them need, if a few layers tell
/// that; else the least without a schedule. Empty if there is none.
std::optional<BudgetSearch::Small> BudgetSearch::small_scheduled(const MemoryLimits& limits) {
  std::optional<Small> best;
  const std::vector<Entry> bounds = small_bounds(limits);
  for (std::size_t i = 0; i < std::min(bounds.size(), kMostScheduled); ++i) {
    if (best && least_rank(bounds[i].least, limits) >= least_rank(best->needs(), limits)) break;
    Small small{bounds[i], {}};
    if (own_device_)
      if (const auto scheduled = estimates_->least_scheduled(small.entry.choices))
        small.scheduled = scheduled->needs;
    if (!best || least_rank(small.needs(), limits) < least_rank(best->needs(), limits))
      best = std::move(small);
    if (!best->scheduled) break;
  }
  return best;
}

std::optional<PlannedStep> BudgetSearch::smallest(const MemoryLimits& limits) {
  const std::optional<Small> least = small_scheduled(limits);
  if (!least) return {};
  return scheduled_smallest(*least, limits);
}

std::optional<PlannedStep> BudgetSearch::nearest(const MemoryLimits& limits) {
  if (!own_device_) return {};
  const auto rank_of = [&](const MemoryNeeds& needs) {
    const MemoryNeeds lacking = limits.lacking(needs, own_device_);
    const int short_ones = (lacking.device > 0) + (lacking.host > 0) + (lacking.disk > 0);
    // Whoever asks is told the least target as well, so what lacks other memories says more.
    return std::tuple(short_ones, lacking.device > 0, all_bytes(lacking), needs.device);
  };
  const auto guess = [&](const Choices& choices) { return corrected_guess(choices); };
  // Less state off the device is nearer where the device has room for the rest, and else is not.
  std::vector<Choices> all = all_;
  for (const Choices& held : held_alternatives(limits))
    if (!is_listed_part(held) && std::ranges::find(all, held) == all.end()) all.push_back(held);
  std::vector<Entry> bounds;
  for (Entry& entry : small_guesses(all, guess, rank_of)) {
    if (bounds.size() == kSmallOnes) break;
    if (is_listed_part(entry.choices) ? set_bound(entry) : set_held_bound(entry, limits))
      bounds.push_back(std::move(entry));
  }
  if (bounds.empty()) return {};
  const auto rank = [&](const Entry& entry) { return rank_of(entry.least); };
  const Entry& least = *std::ranges::min_element(bounds, {}, rank);
  const std::optional<StepEstimate> scheduled = estimates_->least_scheduled(least.choices);
  return without_plan(least, scheduled ? scheduled->needs : least.least);
}

/// Compiles `least` with the least memory that its schedules need; if there is none, what it needs
/// without a schedule is the answer.
PlannedStep BudgetSearch::scheduled_smallest(const Small& least, const MemoryLimits& limits) {
  const Choices& choices = least.entry.choices;
  MemoryLimits tight = limits;
  std::int64_t& scarce = own_device_ ? tight.device_bytes : tight.host_bytes;
  const MemoryNeeds& needs = least.needs();
  scarce = scarce_bytes(needs, search_.machine);
  if (own_device_) {
    tight.host_bytes = std::max(tight.host_bytes, least.entry.least.host);
    scarce /= 2;  // what does not fit is told the least that does, which may be less than a bound
  }
  std::optional<PlannedStep> smallest;
  std::int64_t too_little = 0;
  for (int tries = 0; tries < kMostBudgets; ++tries) {
    const compile::Compiled found = find_programs(choices, tight, compile::Effort::full);
    if (found.fit.fits()) {
      smallest = planned(choices, tight, found);
      break;
    }
    too_little = scarce;
    const std::optional<runtime::Shortage>& shortage = found.fit.shortage;
    const bool told = own_device_ && shortage && shortage->tier == Tier::device;
    // What moves nothing is not scheduled, and tells no least: it needs what it needs without.
    scarce = std::max(scaled(scarce, 1.01),
                      told ? shortage->floor_bytes : scarce_bytes(needs, search_.machine));
  }
  if (!smallest) return without_plan(least.entry, least.entry.least);
  if (!own_device_) return std::move(*smallest);
  return lowered(std::move(*smallest), tight, too_little);
}

/// Compiles `smallest` within less and less memory of the device, until notably less than it needs
/// is too little.
PlannedStep BudgetSearch::lowered(PlannedStep smallest, MemoryLimits tight,
                                  std::int64_t too_little) {
  const auto is_taken = [&](std::int64_t device_bytes) {
    tight.device_bytes = device_bytes;
    if (device_bytes > too_little)
      if (auto smaller = fitting_step(smallest.choices, tight)) {
        smallest = std::move(*smaller);
        return true;
      }
    too_little = std::max(too_little, device_bytes);
    return false;
  };
  walk_down([&] { return smallest.needs.device; }, is_taken);
  return smallest;
}

}  // namespace strata::plan
