// Runs a program of the system for what it says.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace strata::launcher {

struct ProgramEnd {
  int exit_code = 0;  ///< -1: a signal ended it
  std::string text;   ///< what it wrote to standard output and standard error
};
/// Runs a program found in $PATH, without input and with the usual signals, and waits for it.
/// Throws HostError if it cannot be started, or if it has not ended within `limit`: then it is
/// killed.
ProgramEnd run_to_end(const std::vector<std::string>& command, std::chrono::milliseconds limit);

/// Does so, and returns its text. Throws HostError with that if it ends with another code than 0.
std::string output_of(const std::vector<std::string>& command,
                      std::chrono::milliseconds limit = std::chrono::seconds(30));

}  // namespace strata::launcher
