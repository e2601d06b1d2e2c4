#include "plan/strategy.h"

#include <array>
#include <cstddef>
#include <limits>

namespace strata::plan {
namespace {

/// The share of the budget that a strategy uses, and the slowest steps that it allows.
struct Aims {
  double part = 1;
  double slowdown = std::numeric_limits<double>::infinity();
};
Aims aims_of(Strategy strategy) {
  constexpr std::array<Aims, 4> kAims{
      {{.part = 0.95, .slowdown = 1.15}, {.part = 0.98}, {.slowdown = 1.4}, {}}};
  return kAims[static_cast<std::size_t>(strategy)];
}

}  // namespace

std::string_view name_of(Strategy strategy) {
  constexpr std::array<std::string_view, 4> kNames{"conservative", "balanced", "aggressive",
                                                   "maximum"};
  return kNames[static_cast<std::size_t>(strategy)];
}

double share_of_budget(Strategy strategy) { return aims_of(strategy).part; }
double most_slowdown(Strategy strategy) { return aims_of(strategy).slowdown; }

}  // namespace strata::plan
