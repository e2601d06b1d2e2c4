#include "launcher/start/agent_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/shell_word.h"
#include "launcher/command/device_choice.h"

namespace strata::launcher {
namespace {

/// Appends options of a starter, and what it shall run.
std::vector<std::string> with_program(std::vector<std::string> command,
                                      const std::vector<std::string>& more,
                                      const RemoteProgram& program) {
  command.insert(command.end(), more.begin(), more.end());
  command.push_back(program.path);
  command.insert(command.end(), program.arguments.begin(), program.arguments.end());
  return command;
}

}  // namespace

std::string range_text(int least, int most) {
  return least == most ? std::to_string(most) : fmt::format("{}:{}", least, most);
}

std::string elastic_text(const Worlds::Range& worlds) {
  const Worlds::Range any;
  if (worlds.least == any.least && worlds.most == any.most) return "";
  return fmt::format("{}:{}", worlds.least, worlds.most);
}

std::vector<std::string> agent_arguments(const Options& options, const AgentPlace& place) {
  const Options::Hosts& hosts = options.hosts;
  std::vector<std::string> arguments{"--agent",
                                     "--nnodes",
                                     range_text(hosts.least, hosts.count),
                                     "--node-rank",
                                     std::to_string(place.node),
                                     "--master-addr",
                                     hosts.address,
                                     "--master-port",
                                     std::to_string(hosts.port),
                                     "--run-secret",
                                     "-",
                                     "-np",
                                     std::to_string(place.ranks),
                                     "--grace",
                                     std::to_string(options.grace / std::chrono::seconds(1)),
                                     "--rejoin",
                                     std::to_string(hosts.rejoin.count()),
                                     "--rdzv-conf",
                                     fmt::format("join_timeout={}", hosts.join.count()),
                                     "--max-restarts",
                                     std::to_string(options.restarts.most_restarts),
                                     "--hang-timeout",
                                     std::to_string(options.hang_timeout.count())};
  if (const std::string elastic = elastic_text(hosts.worlds); !elastic.empty())
    arguments.insert(arguments.end(), {"--elastic", elastic});
  if (!options.prefix) arguments.emplace_back("--no-prefix");
  if (!place.devices.empty())
    arguments.insert(arguments.end(), {"--include", "localhost:" + device_list(place.devices)});
  if (!options.network_interface.empty())
    arguments.insert(arguments.end(), {"--interface", options.network_interface});
  if (!options.log_directory.empty())
    arguments.insert(arguments.end(), {"--log-dir", options.log_directory});
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), options.command.begin(), options.command.end());
  return arguments;
}

std::vector<std::string> ssh_command(const RemoteProgram& program) {
  std::string there = fmt::format("echo {} && cd {} && exec {}", kSshIsThere,
                                  quoted_for_shell(program.folder), quoted_for_shell(program.path));
  for (const std::string& word : program.arguments) there += " " + quoted_for_shell(word);
  // It asks for no password: nobody is there to type it. A host that is down ends it in time.
  // Connections that the user's ssh shares would leave a process, which were taken for a rank's.
  return {"ssh",
          "-o",
          "BatchMode=yes",
          "-o",
          "ConnectTimeout=30",
          "-o",
          "ControlMaster=no",
          "-o",
          "ControlPath=none",
          "--",
          program.host,
          there};
}

std::vector<std::string> srun_command(const RemoteProgram& program,
                                      const std::vector<std::string>& more) {
  // Ranks divide the cores themselves, and no rank of MPI is started.
  std::vector<std::string> command{"srun",       "--overlap",   "--nodes=1",       "--ntasks=1",
                                   "--nodelist", program.host,  "--cpu-bind=none", "--mpi=none",
                                   "--chdir",    program.folder};
  return with_program(std::move(command), more, program);
}

std::vector<std::string> srun_environment(const std::vector<std::string>& inherited) {
  constexpr std::string_view kOfJob[] = {"SLURM_JOB_",    "SLURM_CLUSTER", "SLURM_WORKING_CLUSTER",
                                         "SLURM_SUBMIT_", "SLURM_ARRAY_",  "SLURM_RESTART_COUNT",
                                         "SLURM_CONF"};
  std::vector<std::string> environment;
  for (const std::string& entry : inherited) {
    const bool is_of_slurm = entry.starts_with("SLURM_") || entry.starts_with("SRUN_");
    const auto begins = [&entry](std::string_view prefix) { return entry.starts_with(prefix); };
    if (!is_of_slurm || std::ranges::any_of(kOfJob, begins)) environment.push_back(entry);
  }
  return environment;
}

std::vector<std::string> mpirun_command(const RemoteProgram& program,
                                        const std::vector<std::string>& more, bool as_root) {
  std::vector<std::string> command{"mpirun",    "-np",  "1",       "--host", program.host,
                                   "--bind-to", "none", "--quiet", "--wdir", program.folder};
  if (as_root) command.emplace_back("--allow-run-as-root");
  return with_program(std::move(command), more, program);
}

}  // namespace strata::launcher
