// Searches for the step that needs least memory, and for the one that comes nearest to limits.
#include <algorithm>
#include <tuple>
#include <utility>

#include "plan/budget_entry.h"

namespace strata::plan {
namespace {

using runtime::Tier;

/// Choices that are estimated to be small, of which the smallest is found by compiling.
constexpr std::size_t kSmallOnes = 6;
/// Choices whose other memories may suffice, of which at most so many are compiled for that.
constexpr std::size_t kMostBounds = 64;
/// Of these, the ones that are scheduled: another one may need less with a schedule than without.
constexpr std::size_t kMostScheduled = 4;
/// The part by which guesses of other memories may be too large.
constexpr double kErrorOfGuesses = 0.05;
/// The part by which memory that few layers tell may be wrong (LayerSamples).
constexpr double kErrorOfFewLayers = 0.01;

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

/// Returns what small choices need without a schedule, those first that need least. Guesses tell
/// which ones may be small; those of drives and host memory are trusted only where they are far
/// off, so that the choices for larger ones are among those that are tried for smaller ones.
std::vector<BudgetSearch::Entry> BudgetSearch::small_bounds(const MemoryLimits& limits) {
  MemoryLimits wide = limits;
  wide.host_bytes = scaled(limits.host_bytes, 1 + kErrorOfGuesses);
  wide.disk_bytes = scaled(limits.disk_bytes, 1 + kErrorOfGuesses);
  std::vector<Entry> guessed;
  for (Choices choices : all_) {
    if (free_.saved) set_again_part(choices, 1);
    guessed.push_back({.choices = choices, .least = estimates_.guess(choices).needs});
  }
  const auto guessed_rank = [&](const Entry& entry) { return least_rank(entry.least, wide); };
  std::ranges::stable_sort(guessed, {}, guessed_rank);
  const auto rank = [&](const Entry& entry) { return least_rank(entry.least, limits); };
  std::vector<Entry> bounds;
  std::size_t holding = 0;
  LeastRank least;
  for (Entry& entry : guessed) {
    const auto [lacking, scarce] = guessed_rank(entry);
    const bool is_decided = lacking > 0 ? holding > 0 || bounds.size() >= kSmallOnes
                                        : holding >= kSmallOnes && scarce >= least.second;
    if (is_decided || bounds.size() == kMostBounds) break;
    const std::optional<StepEstimate> bound = estimates_.bound(entry.choices);
    if (!bound) continue;
    entry.least = bound->needs;
    entry.price = price_of(entry.choices, bound->seconds);
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
      if (const auto scheduled = estimates_.least_scheduled(small.entry.choices))
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
  if (std::optional<PlannedStep> refused = smallest_of_refusal(*least, limits)) return refused;
  return scheduled_smallest(least->entry, limits);
}

std::optional<PlannedStep> BudgetSearch::nearest(const MemoryLimits& limits) {
  if (!own_device_) return {};
  const auto rank_of = [&](const MemoryNeeds& needs) {
    const MemoryNeeds lacking = limits.lacking(needs, own_device_);
    const int short_ones = (lacking.device > 0) + (lacking.host > 0) + (lacking.disk > 0);
    return std::tuple(short_ones, all_bytes(lacking), needs.device);
  };
  std::vector<Entry> small;
  for (Choices choices : all_) {
    if (free_.saved) set_again_part(choices, 1);
    small.push_back({.choices = choices, .least = corrected_guess(choices)});
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
  if (!least) return {};
  const std::optional<StepEstimate> scheduled = estimates_.least_scheduled(least->choices);
  PlannedStep step{.choices = least->choices, .needs = scheduled ? scheduled->needs : least->least};
  step.forecast.step_seconds = least->price / price_of(least->choices, 1);
  return step;
}

/// Returns what a schedule of `least` needs, as a few layers tell; nullopt unless even without a
/// schedule it surely does not fit.
std::optional<PlannedStep> BudgetSearch::smallest_of_refusal(const Small& least,
                                                             const MemoryLimits& limits) const {
  const Entry& entry = least.entry;
  if (!least.scheduled || scaled(entry.least.device, 1 - kErrorOfFewLayers) <= limits.device_bytes)
    return {};
  PlannedStep step{.choices = entry.choices, .needs = entry.least};
  step.needs.device = scaled(least.scheduled->device, 1 + kErrorOfFewLayers);
  step.forecast.step_seconds = entry.price / price_of(entry.choices, 1);
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

}  // namespace strata::plan
