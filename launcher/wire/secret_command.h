// `mlaunch secret`: makes the secret of runs over several hosts.
#pragma once

#include <string>
#include <vector>

namespace strata::launcher {

/// `arguments` follow the word secret. Returns the exit code. Throws InvalidArgument for a wrong
/// command line, HostError if the file exists or cannot be made.
int secret_command(const std::vector<std::string>& arguments);

}  // namespace strata::launcher
