// `mlaunch status`: shows the runs of this user on this host.
#pragma once

#include <string>
#include <vector>

#include "core/standard_output.h"

namespace strata::launcher {

/// `arguments` follow the word status. Returns the exit code.
int status_command(const std::vector<std::string>& arguments, StandardOutput& output);

}  // namespace strata::launcher
