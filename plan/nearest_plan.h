// Finds the nearest Plan that fits if the one that was asked for does not.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/choices.h"
#include "plan/find_plan.h"
#include "plan/memory_needs.h"

namespace strata::plan {

enum class Nearness : std::uint8_t {
  cheapest,   ///< the cheapest Plan that fits
  fits,       ///< a Plan that fits; no work was left to find the cheapest
  unplanned,  ///< choices whose least needs fit; no work was left to search their Plan
  smallest,   ///< a Plan that does not fit, but needs least of all that were tried
};

/// Limits in bytes that a Plan must have in addition, because schedules take as much as they may.
struct NewLimits {
  std::optional<std::int64_t> device_bytes;
  std::optional<std::int64_t> host_bytes;  ///< total of the host's ranks
};

struct Nearest {
  Choices choices;
  NewLimits limits;
  MemoryNeeds needs;  ///< what find_plan's Plan takes; least needs if unplanned or smallest
  Nearness nearness = Nearness::smallest;
};

struct NearestSearch {
  std::optional<Nearest> found;
  bool complete = true;  ///< false: `most_work` was done before all neighbours were tried
};

/// The Choices asked for, and the memory that is there.
struct Wanted {
  Choices asked;
  MachineMemory memory;
  bool refused = true;         ///< `asked` does not fit; false: it may be the answer
  Home farthest = Home::disk;  ///< no state goes farther from the device, unless it was asked to
};

/// Finds the first of the neighbours (neighbours.h) of `wanted.asked` that fits into memory and the
/// budgets of its Plan, then takes back every part of the change that is not needed. `search.plan`
/// is the frame of their Plans; `search.accepts` is not called. If a neighbour moves state and the
/// frame does not limit memory, what is free becomes a limit if the Plan would take more without
/// it. Stops after about `most_work` (compile::Compiled::work), so that equal arguments give equal
/// answers. Finds nothing if no neighbour that was tried keeps the budgets of the frame.
NearestSearch find_nearest(const Search& search, const Wanted& wanted, std::int64_t most_work);

}  // namespace strata::plan
