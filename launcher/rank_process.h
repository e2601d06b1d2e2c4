// Starting the process of one rank.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "core/unique_fd.h"

namespace strata::launcher {

struct RankCommand {
  std::string path;
  std::vector<std::string> arguments;  ///< the program's name first
  std::vector<std::string> environment;
  std::vector<int> kept_fds;  ///< stay open in the rank under the same number
  bool reads_input = false;   ///< inherits standard input; else it reads nothing
  rlimit open_files{};        ///< RLIMIT_NOFILE of the rank
};

struct RankProcess {
  pid_t pid = -1;
  UniqueFd output;  ///< read ends of its standard output and standard error, non-blocking
  UniqueFd error;
};

/// Starts it in its own process group; it is killed when the calling thread ends in any way. Throws
/// HostError when the system cannot start one more process or the program cannot be executed.
RankProcess start_rank(const RankCommand& command);

/// Signals the rank's process group. The rank must not have been waited for.
void signal_rank(pid_t pid, int number);

}  // namespace strata::launcher
