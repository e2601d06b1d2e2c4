#include "plan/target_terms.h"

#include <algorithm>
#include <cmath>

#include "core/round_up.h"
#include "plan/budget_search.h"

namespace strata::plan {
namespace {

/// Rounds up to a whole unit that is a power of ten and at most a hundredth of `bytes`, so that no
/// target that is less by a hundredth works; to no larger one than `most`.
std::int64_t rounded_up(std::int64_t bytes, std::int64_t most) {
  constexpr std::int64_t kTen = 10, kHundredth = 100;
  std::int64_t unit = 1;
  while (unit * kTen <= std::min(most, bytes / kHundredth)) unit *= kTen;
  return round_up(bytes, unit);
}

}  // namespace

std::int64_t least_target(std::int64_t arena_bytes, Strategy strategy, const TargetTerms& terms) {
  const double part = share_of_budget(strategy);
  auto all = static_cast<std::int64_t>(std::ceil(static_cast<double>(arena_bytes) / part));
  while (scaled(all, part) < arena_bytes) ++all;  // as they are rounded
  return rounded_up(all + terms.beside_bytes, terms.most_unit_bytes);
}

std::int64_t arenas_within(std::int64_t target, Strategy strategy, const TargetTerms& terms) {
  return scaled(target - terms.beside_bytes, share_of_budget(strategy));
}

}  // namespace strata::plan
