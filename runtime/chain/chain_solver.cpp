#include "runtime/chain/chain_solver.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "runtime/chain/chain_bound.h"
#include "runtime/chain/chain_floor.h"
#include "runtime/chain/chain_greedy.h"
#include "runtime/chain/chain_search.h"
#include "runtime/chain/chain_steps.h"

namespace strata::runtime {
namespace {

/// Labels of a block in each run: narrow runs find good choices, which make wide ones short.
constexpr std::size_t kWidths[] = {16, 256, 4096, std::size_t{1} << 40};

/// Takes `choice` if it fits and is faster than what the solution has.
void improve(const Chain& chain, ChainChoice choice, ChainSolution& solution) {
  const ChainCost cost = chain_cost(chain, choice);
  if (!cost.fits || (solution.fits() && cost.extra_ns >= solution.cost.extra_ns)) return;
  solution.choice = std::move(choice);
  solution.cost = cost;
}

/// Ticks in whole ns, rounded up.
std::int64_t in_ns(std::int64_t ticks, const ChainSteps& steps) {
  return (ticks + steps.ticks_per_ns - 1) / steps.ticks_per_ns;
}

void search(const Chain& chain, const ChainEffort& effort, ChainSolution& solution) {
  const ChainSteps steps(chain);
  const ChainBound bound(steps);
  const ChainSearch labels(steps, bound);
  const auto raise = [&](std::int64_t ticks) {
    solution.lower_bound_ns =
        std::min(solution.cost.extra_ns, std::max(solution.lower_bound_ns, in_ns(ticks, steps)));
    solution.proven = solution.lower_bound_ns == solution.cost.extra_ns;
  };
  raise(bound.ticks(0, 0, 0, 0));
  ChainWork work{.most = effort.most};
  for (const std::size_t width : kWidths) {
    if (solution.proven || work.is_spent()) break;
    // Whatever is as fast in whole ns is no better.
    const std::int64_t faster = (solution.cost.extra_ns - 1) * steps.ticks_per_ns;
    const ChainSearchResult result = labels.run(faster, width, work);
    if (!result.complete) break;
    if (!result.choice.empty()) improve(chain, result.choice, solution);
    raise(result.least_left_out_ticks);
  }
  solution.effort = work.spent;
}

}  // namespace

ChainSolution solve_chain(const Chain& chain, const ChainEffort& effort,
                          const std::vector<ChainChoice>& known) {
  check_chain(chain);
  ChainSolution solution;
  solution.greedy_ns = -1;
  std::optional<ChainFloor> floor = chain_floor(chain);
  if (!floor) return solution;
  solution.floor_bytes = floor->budget_bytes;
  if (floor->budget_bytes > chain.budget_bytes) return solution;
  if (std::optional<ChainChoice> greedy = greedy_choice(chain)) {
    improve(chain, std::move(*greedy), solution);
    solution.greedy_ns = solution.cost.extra_ns;
  }
  improve(chain, std::move(floor->choice), solution);
  for (const ChainChoice& choice : known) improve(chain, choice, solution);
  search(chain, effort, solution);
  return solution;
}

}  // namespace strata::runtime
