// The command that starts mlaunch as the agent of another host.
#pragma once

#include <string>
#include <vector>

#include "launcher/command/options.h"

namespace strata::launcher {

struct AgentPlace {
  std::string host;  ///< as ssh takes it
  int node = 0;
  int ranks = 1;
};

/// Returns the arguments of mlaunch on that host; its secret comes over standard input.
std::vector<std::string> agent_arguments(const Options& options, const AgentPlace& place);

/// Returns a command that runs `program` with `arguments` on the host, in `folder`: the words of
/// ssh, the last of which is for the shell there, with each word quoted.
std::vector<std::string> ssh_command(const std::string& host, const std::string& folder,
                                     const std::string& program,
                                     const std::vector<std::string>& arguments);

/// Quotes a word for a POSIX shell.
std::string quoted_for_shell(const std::string& word);

}  // namespace strata::launcher
