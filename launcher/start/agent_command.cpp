#include "launcher/start/agent_command.h"

#include <fmt/core.h>

namespace strata::launcher {

std::vector<std::string> agent_arguments(const Options& options, const AgentPlace& place) {
  std::vector<std::string> arguments{"--agent",
                                     "--nnodes",
                                     std::to_string(options.hosts.count),
                                     "--node-rank",
                                     std::to_string(place.node),
                                     "--master-addr",
                                     options.hosts.address,
                                     "--master-port",
                                     std::to_string(options.hosts.port),
                                     "--run-secret",
                                     "-",
                                     "-np",
                                     std::to_string(place.ranks),
                                     "--grace",
                                     std::to_string(options.grace / std::chrono::seconds(1))};
  if (!options.prefix) arguments.emplace_back("--no-prefix");
  if (!options.log_directory.empty())
    arguments.insert(arguments.end(), {"--log-dir", options.log_directory});
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), options.command.begin(), options.command.end());
  return arguments;
}

std::string quoted_for_shell(const std::string& word) {
  std::string quoted = "'";
  for (const char letter : word) {
    if (letter == '\'')
      quoted += "'\\''";
    else
      quoted += letter;
  }
  return quoted + "'";
}

std::vector<std::string> ssh_command(const std::string& host, const std::string& folder,
                                     const std::string& program,
                                     const std::vector<std::string>& arguments) {
  std::string there =
      fmt::format("cd {} && exec {}", quoted_for_shell(folder), quoted_for_shell(program));
  for (const std::string& word : arguments) there += " " + quoted_for_shell(word);
  // It asks for no password: nobody is there to type it.
  return {"ssh", "-o", "BatchMode=yes", "--", host, there};
}

}  // namespace strata::launcher
