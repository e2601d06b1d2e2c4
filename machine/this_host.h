// What this host is, without measuring anything: its processor, its memory and their limits.
#pragma once

#include "machine/machine.h"

namespace strata::machine {

/// A machine whose CPU plays the device with all cores that this process may use; rates are what is
/// typical. Tries doubtful instructions in a child process, about a millisecond.
Machine look_at_this_host();

}  // namespace strata::machine
