#include "launcher/several_hosts.h"

#include <fmt/core.h>
#include <unistd.h>

#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "launcher/control/agent_control.h"
#include "launcher/control/coordinator_control.h"
#include "launcher/control/reach.h"
#include "launcher/wire/listening_address.h"

namespace strata::launcher {
namespace {

/// Hosts are numbers in the run; their names are for people, and need not differ.
Hello hello_of(const Run& run) {
  const bool several = run.options.hosts.count > 1;
  Hello hello{.host = several ? std::to_string(run.options.hosts.node) : run.host,
              .agent = fmt::format("{}.{}", ::getpid(), boot_time_ns()),
              .slots = run.options.ranks};
  if (several) hello.host_name = run.host;
  return hello;
}

Coordinator::Settings settings_of(const Run& run, const Hello& own) {
  Coordinator::Settings settings;
  settings.restarts = run.options.restarts;
  if (run.options.hosts.count == 1) {
    settings.hosts = {own.host};
    return settings;
  }
  for (int node = 0; node < run.options.hosts.count; ++node)
    settings.hosts.push_back(std::to_string(node));
  settings.least_hosts = run.options.hosts.count;
  settings.lease = kLease;
  settings.join = Reach::kJoin;
  return settings;
}

std::unique_ptr<ControlWire> listen(ControlModule& module, const Run& run, RunSecret secret) {
  const Options::Hosts& hosts = run.options.hosts;
  if (secret.key.empty())
    throw ConfigError(
        fmt::format("{} lacks the key, which host 0 needs; make it with: mlaunch "
                    "secret FILE",
                    hosts.secret));
  return module.listen({.address = run.host_address,
                        .port = hosts.port,
                        .secret = std::move(secret),
                        .build = STRATA_VERSION,
                        .welcome = {run.run_id, run.master_address, run.master_port}});
}

}  // namespace

RunParts make_run_parts(RunControl::TimePoint now, Run& run) {
  const Options::Hosts& hosts = run.options.hosts;
  const Hello own = hello_of(run);
  RunParts parts;
  if (is_agent(run))
    parts.control = std::make_unique<AgentControl>(own);
  else
    parts.control = std::make_unique<CoordinatorControl>(now, own, settings_of(run, own),
                                                         run.options.hang_timeout);
  if (hosts.count == 1) return parts;
  RunSecret secret = read_run_secret(hosts.secret);
  parts.module = open_control_module();
  const std::string address = numeric_address(hosts.address);
  if (is_agent(run)) {
    run.host_address = address_towards(address, hosts.port);
    secret.key.clear();
    parts.wire = parts.module->attach({.address = address,
                                       .port = hosts.port,
                                       .secret = std::move(secret),
                                       .build = STRATA_VERSION,
                                       .run_id = {}});
    return parts;
  }
  if (is_loopback(address) && hosts.address != address && hosts.address != "localhost")
    throw ConfigError(
        fmt::format("--master-addr {} leads to {} on this host, where no other host "
                    "can reach it; give the address itself",
                    hosts.address, address));
  run.host_address = run.master_address = address;
  parts.wire = listen(*parts.module, run, std::move(secret));
  return parts;
}

}  // namespace strata::launcher
