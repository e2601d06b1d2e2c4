// Names what a planner aims at under a memory budget.
#pragma once

#include <cstdint>
#include <string_view>

namespace strata::plan {

enum class Strategy : std::uint8_t {
  conservative,  ///< no disk but one asked for, 5 % of the budget stay free, at most 15 %
                 ///< slower than without a budget
  balanced,      ///< the fastest step; 2 % of the budget stay free
  aggressive,  ///< the least memory with which steps are at most 40 % slower than without a budget
  maximum,     ///< the least memory
};
std::string_view name_of(Strategy strategy);

/// The share of a budget that the strategy uses, 0 to 1.
double share_of_budget(Strategy strategy);

/// The time of a step, over that without a budget, above which the strategy refuses; infinity:
/// none.
double most_slowdown(Strategy strategy);

}  // namespace strata::plan
