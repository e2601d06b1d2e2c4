// What mlaunch says while the hosts of a run come together, one line each.
#pragma once

#include <string>

#include "launcher/command/run.h"
#include "launcher/control/messages.h"

namespace strata::launcher {

/// On host 0: where the run waits, and for how many hosts.
std::string waiting_text(const Run& run);

/// On another host: that it was let in.
std::string joined_text(const Run& run);

/// On another host: which ranks start there.
std::string ranks_text(const StartAttempt& start);

}  // namespace strata::launcher
