#include "plan/target_terms.h"

#include <cmath>

#include "core/round_up.h"
#include "plan/budget_search.h"

namespace strata::plan {

std::int64_t least_target(std::int64_t arena_bytes, Strategy strategy, const TargetTerms& terms) {
  const double part = share_of_budget(strategy);
  auto all = static_cast<std::int64_t>(std::ceil(static_cast<double>(arena_bytes) / part));
  while (scaled(all, part) < arena_bytes) ++all;  // as they are rounded
  return round_up(all + terms.beside_bytes, terms.unit_bytes);
}

std::int64_t arenas_within(std::int64_t target, Strategy strategy, const TargetTerms& terms) {
  return scaled(target - terms.beside_bytes, share_of_budget(strategy));
}

}  // namespace strata::plan
