// The description of this host without measurements: its processor, its memory and their limits.
#pragma once

#include <string>

#include "machine/machine.h"

namespace strata::machine {

/// Returns the name of the processor as /proc/cpuinfo has it; "unknown" without one.
std::string processor_name();

/// Returns a machine whose CPU plays the device with all cores that this process may use, at
/// typical rates. Tries doubtful instructions in a child process (a millisecond).
Machine look_at_this_host();

}  // namespace strata::machine
