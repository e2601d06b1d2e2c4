// Where the Plan that was asked for does not fit: the nearest one that does.
#pragma once

#include <chrono>
#include <optional>

#include "plan/choices.h"
#include "plan/find_plan.h"
#include "plan/memory_needs.h"

namespace strata::plan {

enum class Nearness : std::uint8_t {
  cheapest,  ///< of all that fit
  fits,      ///< there was no time to find the cheapest
  smallest,  ///< does not fit, but needs least of all that were tried
};

struct Nearest {
  Choices choices;
  MemoryNeeds needs;
  Nearness nearness = Nearness::smallest;
};

struct NearestSearch {
  std::optional<Nearest> found;
  bool complete = true;  ///< false: neighbours were left untried for want of time
};

/// Finds the first of the neighbours (neighbours.h) of `asked` that `memory` holds: where it and
/// Plans' budgets are too little for `asked` itself. Of what it makes again for that it then makes
/// no more than is needed (Choices::again_part). `search.plan` is the frame of their Plans.
/// Where the neighbour moves state and the frame does not limit host memory, it is limited to what
/// is free: transfers would take all that makes a step faster. Finds nothing where no neighbour
/// that was planned by `until` keeps the budgets of the frame.
NearestSearch find_nearest(const Search& search, const Choices& asked, const MachineMemory& memory,
                           std::chrono::steady_clock::time_point until);

}  // namespace strata::plan
