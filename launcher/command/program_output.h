// Runs a program of the system for what it says.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace strata::launcher {

/// Runs a program found in $PATH, without input and with the usual signals, waits for it and
/// returns what it wrote to standard output and standard error. Throws HostError with that text if
/// it cannot be started or ends with another code than 0, or if it has not ended within `limit`:
/// then it is killed.
std::string output_of(const std::vector<std::string>& command,
                      std::chrono::milliseconds limit = std::chrono::seconds(30));

}  // namespace strata::launcher
