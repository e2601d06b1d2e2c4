// The description of this host without measurements: its processor, its memory and their limits.
#pragma once

#include "machine/machine.h"

namespace strata::machine {

/// Returns a machine whose CPU plays the device with all cores that this process may use, at
/// typical rates. Tries doubtful instructions in a child process (a millisecond).
Machine look_at_this_host();

}  // namespace strata::machine
