// A Program that runs each kind of instruction of another one alone, so that its time can be
// measured before the first step.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "runtime/program/program.h"

namespace strata::runtime {

struct RehearsalLimits {
  int repeats = 3;               ///< runs of each kind, in turns, so that caches are as in a step
  double seconds = 3;            ///< foreseen for all but collectives; see make_rehearsal
  std::int64_t least_ns = 5000;  ///< kinds that are foreseen to be shorter are left out
  int collectives = 64;          ///< most kinds of collectives, in the order of the list
};

struct Rehearsal {
  /// Runs with the same arenas as its model: instructions at their own places, one after another
  /// over all queues, without predicates.
  Program program;
  /// Persistent storage that it writes; holds nothing of use afterwards.
  std::vector<std::string> written;
};

/// Picks from `program` the kinds (Demand::signature) that are not among `known`, and adds them to
/// it. Kinds that take most of a step come first, and take their time off `limits.seconds`; one for
/// which only a single run is left has that. Leaves out transfers of the disk, what writes the
/// state of steps, predicated copies, and what reads numbers as places (tokens) that the host's
/// inputs do not fill. Ranks whose Programs have the same collectives rehearse the same ones, in
/// one order.
Rehearsal make_rehearsal(const Program& program, const machine::Machine& machine,
                         RehearsalLimits& limits, std::set<std::uint64_t>& known);

}  // namespace strata::runtime
