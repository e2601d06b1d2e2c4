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

/// Returns `machine` with what `host` has of processor and memory in place of what a hardware file
/// says of the computer that its device usually lies in. Rates stay, and so do the cores and the
/// vector width of a CPU that plays the device: they are a rank's share, and the same on all ranks.
Machine placed_on(Machine machine, const Machine& host);

}  // namespace strata::machine
