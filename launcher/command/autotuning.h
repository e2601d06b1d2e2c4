// --autotuning run|tune: lets the planner of train choose what is not given, or only say what it
// would choose. Nothing is tried, since a plan is computed.
#pragma once

#include <string>

#include "launcher/command/options.h"

namespace strata::launcher {

/// Changes the command and adds a note. "run": train gets --target-memory auto, unless it has a
/// target. "tune": the program plan starts in its place, alone. Throws InvalidArgument for another
/// word, or another program than train.
void apply_autotuning(const std::string& mode, Options& options);

}  // namespace strata::launcher
