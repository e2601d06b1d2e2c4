// Runs another program to its end.
#pragma once

#include <string>
#include <vector>

namespace strata::train {

struct ProgramResult {
  int exit_code = 0;  ///< 128 + signal when a signal ended it
  std::string output;
  std::string errors;
};

/// Spawns arguments[0] (looked up in PATH when it has no slash) without a shell, with `input` as
/// its standard input, and waits. Throws HostError when it cannot be started.
ProgramResult run_program(const std::vector<std::string>& arguments, const std::string& input);

}  // namespace strata::train
