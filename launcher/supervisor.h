// Runs the ranks of this host: carries out what the state machine decides and tells it what
// happens.
#pragma once

#include "launcher/command/run.h"

namespace strata::launcher {

/// Starts the ranks; returns mlaunch's exit code when no process of them is left. Call it from the
/// only thread of the process.
int supervise(const Run& run);

}  // namespace strata::launcher
