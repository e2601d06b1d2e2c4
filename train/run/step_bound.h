// What limits a step that moves state between tiers: the bound, what of it was reached, and where
// the computation stood still.
#pragma once

#include <string>

#include "machine/machine.h"
#include "runtime/execute/usage_recorder.h"

namespace strata::train {

/// Bounds one step, or the mean of several.
struct StepBound {
  double bound_seconds = 0;          ///< of perfect overlap: the busiest resource alone
  const char* limit = "";            ///< "compute", "disk", "link up", "link down"
  double reached = 0;                ///< bound / measured time
  runtime::Usage usage;              ///< per step
  [[nodiscard]] bool moves() const;  ///< whether anything crosses a link or the disk
};

/// `usage` of `steps` steps that took `seconds` each. The computation's share is its measured time
/// at work; that of the disk and the links their bytes over the rates, which reads and writes of
/// one disk share.
StepBound find_bound(const runtime::Usage& usage, double steps, double seconds,
                     const machine::Machine& machine);

/// "bound 1.92 s (disk), 91 % reached; ..." with bytes per link and waits; for people.
std::string describe(const StepBound& bound);
/// The same as members of a JSON object, without braces.
std::string to_json_members(const StepBound& bound);

}  // namespace strata::train
