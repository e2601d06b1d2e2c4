#include "launcher/several_hosts.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <optional>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/own_files.h"
#include "core/version.h"
#include "launcher/command/free_port.h"
#include "launcher/control/agent_control.h"
#include "launcher/control/coordinator_control.h"
#include "launcher/group/rank_environment.h"
#include "launcher/wire/listening_address.h"
#include "launcher/wire/own_build.h"

namespace strata::launcher {
namespace {

/// Hosts are numbers in the run; their names are for people, and need not differ.
Hello hello_of(const Run& run) {
  const bool several = run.options.hosts.are_several();
  Hello hello{.host = several ? std::to_string(run.options.hosts.node) : run.host,
              .agent = fmt::format("{}.{}", ::getpid(), boot_time_ns()),
              .slots = run.options.ranks};
  if (several) hello.host_name = run.host;
  hello.address = run.host_address;
  return hello;
}

Coordinator::Settings settings_of(const Run& run) {
  Coordinator::Settings settings;
  settings.restarts = run.options.restarts;
  if (!run.options.hosts.are_several()) {
    settings.hosts = {run.host};
    return settings;
  }
  for (int node = 0; node < run.options.hosts.count; ++node)
    settings.hosts.push_back(std::to_string(node));
  if (run.options.hosts.node >= 0) settings.own_host = hello_of(run).host;
  settings.least_hosts = run.options.hosts.least;
  settings.worlds = run.options.hosts.worlds;
  settings.rejoin = run.options.hosts.rejoin;
  settings.names_all_missing = run.options.hosts.names_all_missing;
  settings.lease = kLease;
  settings.join = run.options.hosts.join;
  settings.secret_file =
      run.options.hosts.secret == "-" ? "standard input" : run.options.hosts.secret;
  return settings;
}

std::unique_ptr<RunControl> make_control(RunControl::TimePoint now, const Run& run) {
  if (is_agent(run)) return std::make_unique<AgentControl>(hello_of(run));
  const bool has_ranks = run.options.hosts.node >= 0;
  return std::make_unique<CoordinatorControl>(
      now, has_ranks ? std::optional(hello_of(run)) : std::nullopt, settings_of(run),
      run.options.hang_timeout);
}

/// Lists what all hosts must be told alike; ranks, logs, devices and the time to save may differ.
AgreedFacts facts_of(const Options& options) {
  return {.build = own_build(version()),
          .options = {{"--nnodes", range_text(options.hosts.least, options.hosts.count)},
                      {"--elastic", elastic_text(options.hosts.worlds)},
                      {"--rejoin", std::to_string(options.hosts.rejoin.count())},
                      {"--max-restarts", std::to_string(options.restarts.most_restarts)},
                      {"--hang-timeout", std::to_string(options.hang_timeout.count())}},
          .command = options.command};
}

std::unique_ptr<ControlWire> attach(ControlModule& module, const Run& run) {
  const Options::Hosts& hosts = run.options.hosts;
  RunSecret secret = read_run_secret(hosts.secret);
  secret.key.clear();
  return module.attach({.address = hosts.address,
                        .port = hosts.port,
                        .secret = std::move(secret),
                        .facts = facts_of(run.options),
                        .run_id = {},
                        .secret_file = hosts.secret});
}

std::string without_user(const std::string& name) { return name.substr(name.find('@') + 1); }

const char* starter_of(const Options& options) {
  return options.launcher == Options::Launcher::local ? "ssh"
         : options.launcher == Options::Launcher::mpi ? "mpirun"
                                                      : "srun";
}

/// Returns the address by which this host reaches the first of the others that it knows.
std::string address_towards_others(const Options& options) {
  const Options::Hosts& hosts = options.hosts;
  std::vector<std::string> others;
  for (int node = 0; std::cmp_less(node, hosts.listed.size()); ++node)
    if (node != hosts.node)
      others.push_back(without_user(hosts.listed[static_cast<std::size_t>(node)].name));
  std::string unknown;
  const auto towards = [&unknown](const auto& look_up) -> std::optional<std::string> {
    try {
      return address_towards(look_up(), 22);
    } catch (const HostError& error) {
      unknown += (unknown.empty() ? "" : "; ") + std::string(error.what());
      return {};
    }
  };
  // Most runs know their first host, and need not ask for the others.
  if (!others.empty()) {
    if (const auto own = towards([&] { return numeric_address(others.front()); })) return *own;
    others.erase(others.begin());
  }
  for (std::future<std::string>& found : look_up_at_once(others))
    if (const auto own = towards([&] { return found.get(); })) return *own;
  throw HostError(
      fmt::format("{}: {}; write names as this host knows them, or, if {} alone does, say by which "
                  "address the others reach this host: --master-addr ADDRESS",
                  hosts.listed_by, unknown, starter_of(options)));
}

/// Returns the address at which the coordinator listens: the given one, or that of the way to the
/// others.
std::string own_address(const Options& options) {
  const Options::Hosts& hosts = options.hosts;
  if (hosts.address.empty()) return address_towards_others(options);
  const std::string address = numeric_address(hosts.address);
  if (is_loopback(address) && hosts.address != address && hosts.address != "localhost")
    throw ConfigError(
        fmt::format("--master-addr {} leads to {} on this host, where no other host "
                    "can reach it; give the address itself",
                    hosts.address, address));
  return address;
}

/// Returns MASTER_ADDR of the ranks: the host of rank 0.
std::string master_address(const Run& run) {
  const Options::Hosts& hosts = run.options.hosts;
  if (hosts.node == 0) return run.host_address;
  const std::string first = without_user(hosts.listed.front().name);
  try {
    return numeric_address(first);
  } catch (const HostError&) {
    return first;  // a name that ssh alone knows here; programs may know it there
  }
}

RunSecret secret_of(ControlModule& module, const Options::Hosts& hosts) {
  if (!hosts.listed.empty() && hosts.secret.empty()) return module.make_secret();
  RunSecret secret = read_run_secret(hosts.secret);
  if (secret.key.empty())
    throw ConfigError(
        fmt::format("{} lacks the key, which host 0 needs; make it with: mlaunch "
                    "secret FILE",
                    hosts.secret));
  return secret;
}

AgentStart start_of(const Options& options, const std::string& host, const RemoteProgram& agent) {
  AgentStart start{.host = host, .name = agent.host, .environment = own_environment()};
  switch (options.launcher) {
    case Options::Launcher::local:
      start.command = ssh_command(agent);
      start.tells_arrival = true;
      break;
    case Options::Launcher::mpi:
      start.command = mpirun_command(agent, options.launcher_arguments, ::geteuid() == 0);
      break;
    case Options::Launcher::slurm:
      start.command = srun_command(agent, options.launcher_arguments);
      start.environment = srun_environment(start.environment);
      break;
  }
  return start;
}

/// Returns how the agents of the other listed hosts are started.
std::vector<AgentStart> starts_of(const Options& options) {
  const Options::Hosts& hosts = options.hosts;
  std::vector<AgentStart> starts;
  for (int node = 0; std::cmp_less(node, hosts.listed.size()); ++node) {
    const ListedHost& host = hosts.listed[static_cast<std::size_t>(node)];
    if (node == hosts.node) continue;
    starts.push_back(
        start_of(options, std::to_string(node),
                 {host.name, std::filesystem::current_path().string(), own_directory() + "/mlaunch",
                  agent_arguments(options, {node, host.slots, host.devices})}));
  }
  return starts;
}

}  // namespace

RunParts make_run_parts(RunControl::TimePoint now, Run& run) {
  Options::Hosts& hosts = run.options.hosts;
  RunParts parts;
  if (hosts.are_several()) parts.module = open_control_module();
  if (!hosts.are_several() || is_agent(run)) {
    parts.control = make_control(now, run);
    if (parts.module) parts.wire = attach(*parts.module, run);
    return parts;
  }
  RunSecret secret = secret_of(*parts.module, hosts);
  hosts.address = run.host_address = own_address(run.options);
  if (hosts.port == 0) hosts.port = find_free_port();
  run.master_address = master_address(run);
  parts.wire = parts.module->listen({.address = run.host_address,
                                     .port = hosts.port,
                                     .secret = secret,
                                     .facts = facts_of(run.options),
                                     .hosts = settings_of(run).hosts,
                                     .welcome = {run.run_id, run.master_address, run.master_port},
                                     .takes_up_runs = hosts.listed.empty()});
  parts.control = make_control(now, run);  // its own host's address is known now
  parts.starts = starts_of(run.options);
  secret.key.clear();
  parts.agents_secret = format_run_secret(secret);
  return parts;
}

}  // namespace strata::launcher
