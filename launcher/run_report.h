// What mlaunch says when the ranks have ended: which rank failed and why, or why the run ended.
#pragma once

#include "launcher/control/coordinator.h"
#include "launcher/run.h"
#include "launcher/screen.h"

namespace strata::launcher {

/// Says it on the screen, once no rank of the attempt is left.
void report_attempt(const Run& run, const AttemptReport& report, Screen& screen);

}  // namespace strata::launcher
