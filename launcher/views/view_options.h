// The command lines of `mlaunch status` and `mlaunch stop`.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace strata::launcher {

struct ViewOptions {
  std::string run;  ///< id of a run or the beginning of one; empty: not given
  bool json = false;
  bool watch = false;
  bool now = false;
  std::optional<std::chrono::seconds> wait;  ///< at most so long for the end; nullopt: as needed
  bool show_help = false;
};

/// Parses what follows the word `command`, "status" or "stop". Throws InvalidArgument.
ViewOptions parse_view_options(const std::string& command,
                               const std::vector<std::string>& arguments);

/// Returns the text of `mlaunch COMMAND --help`.
std::string view_help(const std::string& command);

}  // namespace strata::launcher
