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

/// Limits that a Plan must have besides, because schedules take what they may; bytes.
struct NewLimits {
  std::optional<std::int64_t> device_bytes;
  std::optional<std::int64_t> host_bytes;  ///< of all ranks of the host
};

struct Nearest {
  Choices choices;
  NewLimits limits;
  MemoryNeeds needs;  ///< of the smallest at least, of others what find_plan's Plan takes
  Nearness nearness = Nearness::smallest;
};

struct NearestSearch {
  std::optional<Nearest> found;
  bool complete = true;  ///< false: neighbours were left untried for want of time
};

/// What is looked for, and where.
struct Wanted {
  Choices asked;
  MachineMemory memory;
  bool refused = true;  ///< `asked` does not fit; false: it may be the answer
};

/// Finds the first of the neighbours (neighbours.h) of what is asked for that the memory holds:
/// where it and Plans' budgets are too little for `asked` itself. Takes back what of the change is
/// not needed. `search.plan` is the frame of their Plans; `search.accepts` is not called.
/// Where the neighbour moves state and the frame does not limit memory, what is free becomes a
/// limit if the Plan takes more without. Finds nothing where no neighbour that was planned by
/// `until` keeps the budgets of the frame.
NearestSearch find_nearest(const Search& search, const Wanted& wanted,
                           std::chrono::steady_clock::time_point until);

}  // namespace strata::plan
