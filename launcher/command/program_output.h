// Runs a program of the system for what it says.
#pragma once

#include <string>
#include <vector>

namespace strata::launcher {

/// Runs a program found in $PATH, without input, waits for it and returns what it wrote to standard
/// output and standard error. Throws HostError with that text if it cannot be started or ends with
/// another code than 0.
std::string output_of(const std::vector<std::string>& command);

}  // namespace strata::launcher
