// Finds those of a block of lifetimes that are held at the same time as one, with the processor's
// vector instructions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/schedule/held_times.h"

namespace strata::runtime {

/// Number of lifetimes that are compared with one at once.
constexpr std::size_t kHeldBlock = 64;

/// Returns a bit per lifetime of a block: 1 if it is held at the same time as `wanted`. `begins`
/// and `ends` have kHeldBlock numbers each.
using HeldWith = std::uint64_t (*)(const HeldTimes& wanted, const std::int32_t* begins,
                                   const std::int32_t* ends);

/// Returns the fastest such function of this processor; all give the same bits.
HeldWith held_with();

}  // namespace strata::runtime
