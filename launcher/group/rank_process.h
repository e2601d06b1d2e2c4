// Starts the process of one rank.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "core/unique_fd.h"

namespace strata::launcher {

struct RankCommand {
  std::string path;
  std::vector<std::string> arguments;  ///< program's name first
  std::vector<std::string> environment;
  std::vector<int> kept_fds;  ///< these stay open in the rank under the same numbers
  bool reads_input = false;   ///< true: inherits standard input; false: reads nothing
  int input_fd = -1;          ///< its standard input; -1: as reads_input says
  rlimit open_files{};        ///< RLIMIT_NOFILE of the rank
};

struct RankProcess {
  pid_t pid = -1;
  UniqueFd output;  ///< non-blocking read ends of its standard output and standard error
  UniqueFd error;
};

/// Starts a rank in its own process group. The rank is killed when the calling thread ends in any
/// way. Throws HostError when the system cannot start a process or the program cannot be executed.
RankProcess start_rank(const RankCommand& command);

/// Raises this process's limit of open files as far as it may; returns the limit as it was.
rlimit raise_open_files();

/// Signals the rank's process group. The rank must not have been waited for yet.
void signal_rank(pid_t pid, int number);

}  // namespace strata::launcher
