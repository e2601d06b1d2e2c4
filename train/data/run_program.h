// Runs another program to its end.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::train {

struct ProgramResult {
  int exit_code = 0;  ///< 128 + signal if a signal ended it
  std::string output;
  std::string errors;
};

/// Spawns arguments[0] (looked up in PATH if it has no slash) without a shell, with `input` as its
/// standard input, and waits for it. Passes its standard output to `hear` piece by piece while it
/// runs. Throws HostError if it cannot be started.
ProgramResult run_program(const std::vector<std::string>& arguments, const std::string& input,
                          const std::function<void(std::string_view)>& hear = {});

}  // namespace strata::train
