// What mlaunch says when the ranks have ended: which rank failed and why, or why the run ended.
#pragma once

#include <string>

#include "launcher/command/run.h"
#include "launcher/control/coordinator.h"

namespace strata::launcher {

/// Returns the lines, without a newline at the end, once no rank of the attempt is left; "": there
/// is nothing to say.
std::string attempt_text(const Run& run, const AttemptReport& report);

}  // namespace strata::launcher
