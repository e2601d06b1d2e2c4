// Lists what a run could choose in place of what was asked for: the space that the planner
// searches.
#pragma once

#include <vector>

#include "plan/choices.h"

namespace strata::plan {

/// Says what may be chosen otherwise; all else stays as it was asked for.
struct Freedom {
  bool micro_batch = true;     ///< with the number of micro-steps; samples per step stay
  bool stage = true;           ///< ZeRO stage
  bool saved = true;           ///< how much of what layers save is recomputed
  bool order = true;           ///< of micro-steps: one by one, or layer by layer
  bool sums = true;            ///< home of gradients' sums between micro-steps
  bool optimizer = true;       ///< home of optimizer state, and the share that leaves the device
  bool parameters = true;      ///< home of parameters
  bool activations = true;     ///< home of saved values
  Home farthest = Home::disk;  ///< no state goes farther from the device, unless it was asked to
};

/// Returns all choices that `free` allows, `asked` first. How much is recomputed is left as asked:
/// it follows from the memory that the other choices leave. Those that move less data come first.
/// `own_device`: the device's memory is not the host's, so that moving to host memory frees it.
std::vector<Choices> alternatives(const Choices& asked, const Freedom& free,
                                  const runtime::Plan& frame, bool own_device);

/// True if alternatives with these homes of state have this share of the optimizer's off the
/// device.
bool is_listed_part(const Choices& choices);

}  // namespace strata::plan
