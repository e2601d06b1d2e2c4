// Turns bytes of arenas into the target of memory that a refusal names, and back.
#pragma once

#include <cstdint>

#include "plan/strategy.h"

namespace strata::plan {

/// How targets are named: with bytes beside arenas, with three digits or more, up to what a machine
/// has.
struct TargetTerms {
  std::int64_t beside_bytes = 0;
  std::int64_t most_unit_bytes = 1;  ///< that they are rounded up to, a power of ten
  std::int64_t most_bytes = 0;       ///< 0: unknown
};

/// Returns the least target whose part that the strategy uses holds arenas of so many bytes.
std::int64_t least_target(std::int64_t arena_bytes, Strategy strategy, const TargetTerms& terms);

/// Returns the bytes of arenas that the strategy uses of a target; 0 or fewer: none.
std::int64_t arenas_within(std::int64_t target, Strategy strategy, const TargetTerms& terms);

}  // namespace strata::plan
