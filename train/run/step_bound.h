// Finds what limits a step that moves state between tiers: the bound, how much of it was reached,
// and where the computation stood still.
#pragma once

#include <string>

#include "machine/machine.h"
#include "runtime/execute/usage_recorder.h"

namespace strata::train {

/// The bound of one step, or of the mean of several.
struct StepBound {
  double bound_seconds = 0;          ///< time of the busiest resource: perfect overlap
  const char* limit = "";            ///< "compute", "host updates", "disk", "link up", "link down"
  double reached = 0;                ///< bound / measured time
  runtime::Usage usage;              ///< per step
  [[nodiscard]] bool moves() const;  ///< true if anything crosses a link or the disk
};

/// Computes the bound from `usage` of `steps` steps that took `seconds` each. Compute and host
/// updates count with their time at work (StepMeter: the least); disk and links with their bytes
/// over their rates, where reads and writes share a disk. At most `seconds`.
StepBound find_bound(const runtime::Usage& usage, double steps, double seconds,
                     const machine::Machine& machine);

/// Text for people: "bound 1.92 s (disk), 91 % reached; ..." with bytes per link and waits.
std::string describe(const StepBound& bound);
/// The bound as members of a JSON object, without braces.
std::string to_json_members(const StepBound& bound);

}  // namespace strata::train
