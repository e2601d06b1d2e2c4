// `mlaunch stop`: ends a run of this user on this host.
#pragma once

#include <string>
#include <vector>

#include "core/standard_output.h"

namespace strata::launcher {

/// `arguments` follow the word stop. Returns the exit code.
int stop_command(const std::vector<std::string>& arguments, StandardOutput& output);

}  // namespace strata::launcher
