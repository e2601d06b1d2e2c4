// `mlaunch secret`: makes the secret of runs over several hosts.
#pragma once

#include <string>
#include <vector>

#include "core/standard_output.h"

namespace strata::launcher {

/// `arguments` follow the word secret. Returns the exit code. Throws InvalidArgument for a wrong
/// command line, HostError if the file exists or cannot be made.
int secret_command(const std::vector<std::string>& arguments, StandardOutput& output);

}  // namespace strata::launcher
