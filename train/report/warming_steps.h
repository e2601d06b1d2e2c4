// Says which steps of a run do not count where its time per step is told.
#pragma once

#include <cstddef>
#include <string>

namespace strata::train {

/// How many of the first of `steps` steps are left out of "measured seconds per step", wherever
/// these are told: memory is touched in the first and libraries are loaded until the second ends.
/// The last step always counts.
constexpr std::size_t warming_steps(std::size_t steps) {
  constexpr std::size_t kWarming = 2;
  if (steps == 0) return 0;
  return steps > kWarming ? kWarming : steps - 1;
}

/// ", without the first 2": which of `steps` steps are left out; "" if none is.
inline std::string without_warming_text(std::size_t steps) {
  const std::size_t left_out = warming_steps(steps);
  if (left_out == 0) return "";
  return left_out == 1 ? ", without the first" : ", without the first " + std::to_string(left_out);
}

}  // namespace strata::train
