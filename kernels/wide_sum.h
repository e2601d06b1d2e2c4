// An exact sum of doubles in fixed point, so that neither order nor grouping nor the number of
// ranks can change it (Kulisch's long accumulator, kept as digits that an integer all-reduce can
// add).
#pragma once

#include <cstdint>
#include <span>

#include "kernels/step_state.h"

namespace strata::kernels {

/// Digit i counts units of 2^(32 i - 1088): the digits cover every finite double. Adding puts less
/// than 2^32 into a digit, so 2^31 additions, over all ranks together, fit without carrying; at one
/// addition per 1,024 elements that is a model of 2 * 10^12 parameters. Sums are kept without
/// carrying, hence equal additions give equal digits in whatever order; `wide_value` carries.
using WideDigits = std::span<std::int64_t, AgreedWord::kDigits>;
using ConstWideDigits = std::span<const std::int64_t, AgreedWord::kDigits>;

/// Adds `value` exactly. False, and nothing added, when it is NaN, infinite or negative.
[[nodiscard]] bool wide_add(WideDigits digits, double value);

/// The sum, rounded once to the nearest double (ties to even). Infinity beyond the largest double.
[[nodiscard]] double wide_value(ConstWideDigits digits);

}  // namespace strata::kernels
