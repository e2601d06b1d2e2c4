// Messages of the control plane as words, for the trace of a simulated run.
#pragma once

#include <string>

#include "launcher/control/messages.h"

namespace strata::launcher::simulation {

std::string describe(const AgentMessage& message);
std::string describe(const CoordinatorMessage& message);

}  // namespace strata::launcher::simulation
