// Names a start of ranks in a simulated run.
#pragma once

#include <compare>

namespace strata::launcher::simulation {

/// A coordinator that takes up a run may number an attempt like one of the coordinator before that
/// it has not heard of.
struct StartId {
  int coordinator = 0;
  int attempt = -1;
  auto operator<=>(const StartId&) const = default;
};

}  // namespace strata::launcher::simulation
