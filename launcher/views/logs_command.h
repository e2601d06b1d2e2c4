// `mlaunch logs`: prints what the ranks of a run have printed.
#pragma once

#include <string>
#include <vector>

namespace strata::launcher {

/// `arguments` follow the word logs. Returns the exit code.
int logs_command(const std::vector<std::string>& arguments);

}  // namespace strata::launcher
