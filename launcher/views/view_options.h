// The command lines of `mlaunch status`, `mlaunch stop` and `mlaunch logs`.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace strata::launcher {

struct ViewOptions {
  std::string run;          ///< id of a run or the beginning of one; empty: not given
  std::optional<int> rank;  ///< whose logs; nullopt: all ranks'
  bool json = false;
  bool watch = false;
  bool now = false;
  bool follow = false;
  std::optional<std::uint64_t> tail;  ///< begins with the last lines; nullopt: all that are kept
  bool only_output = false;           ///< of standard output
  bool only_error = false;            ///< of standard error
  std::optional<std::chrono::seconds> wait;  ///< at most so long for the end; nullopt: as needed
  /// Where the run listens, if it is asked from anywhere; empty: it is one of this host.
  struct At {
    std::string address;  ///< name or numeric address
    int port = 0;
    std::string secret;  ///< file with the run's secret
  };
  At at;
  bool show_help = false;

  [[nodiscard]] bool is_elsewhere() const { return !at.address.empty(); }
};

/// Parses what follows the word `command`: "status", "stop" or "logs". Throws InvalidArgument.
ViewOptions parse_view_options(const std::string& command,
                               const std::vector<std::string>& arguments);

/// Returns the text of `mlaunch COMMAND --help`.
std::string view_help(const std::string& command);

}  // namespace strata::launcher
