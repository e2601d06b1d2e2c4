// `mlaunch logs`: prints what the ranks of a run have printed.
#pragma once

#include <string>
#include <vector>

#include "core/standard_output.h"

namespace strata::launcher {

/// `arguments` follow the word logs. Returns the exit code.
int logs_command(const std::vector<std::string>& arguments, StandardOutput& output);

}  // namespace strata::launcher
