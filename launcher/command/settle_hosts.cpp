#include "launcher/command/settle_hosts.h"

#include <fmt/core.h>

#include "core/error.h"

namespace strata::launcher {
namespace {

/// Hosts that this mlaunch starts agents on: the first `--nnodes` of the list.
void settle_listed_hosts(const GivenHosts& given, Options& options) {
  Options::Hosts& hosts = options.hosts;
  if (options.launcher != Options::Launcher::local)
    throw InvalidArgument(given.listed_by +
                          " does not go with --launcher mpi; give it to mpirun: "
                          "--launcher-args \"-H a:2,b:2\"");
  if (given.node || !hosts.secret.empty())
    throw InvalidArgument(given.listed_by +
                          " starts all hosts; --node-rank and --run-secret are for "
                          "hosts that are started one by one");
  const auto listed = static_cast<int>(hosts.listed.size());
  if (given.count.value_or(1) > listed)
    throw InvalidArgument(
        fmt::format("--nnodes {}: {} has {}", *given.count, given.listed_by, listed));
  if (given.count) hosts.listed.resize(static_cast<std::size_t>(*given.count));
  hosts.count = static_cast<int>(hosts.listed.size());
  hosts.node = -1;
  const int usual = options.ranks;
  const bool is_usual_given = options.ranks_given;
  for (std::size_t node = 0; node < hosts.listed.size(); ++node) {
    ListedHost& host = hosts.listed[node];
    if (is_usual_given && host.slots != 0 && host.slots != usual)
      throw InvalidArgument(fmt::format("{} contradicts the {} slots of {}; give one of them",
                                        given.ranks_by, host.slots, host.name));
    if (host.slots == 0) host.slots = usual;
    if (!is_this_host(host.name)) continue;
    if (hosts.node >= 0)
      throw InvalidArgument(fmt::format("{}: {} and {} are both this host", given.listed_by,
                                        host.name,
                                        hosts.listed[static_cast<std::size_t>(hosts.node)].name));
    hosts.node = static_cast<int>(node);
    options.ranks = host.slots;
    options.ranks_given = true;
  }
  hosts.port = options.master_port.value_or(0);
  options.master_port.reset();
}

/// A host of several that each have an mlaunch of their own.
void settle_joining_host(const GivenHosts& given, Options& options) {
  Options::Hosts& hosts = options.hosts;
  if (options.launcher != Options::Launcher::local)
    throw InvalidArgument("--nnodes does not go with --launcher mpi: mpirun -H names the hosts");
  std::string missing;
  const auto need = [&missing](bool is_there, const char* option) {
    if (!is_there) missing += (missing.empty() ? "" : ", ") + std::string(option);
  };
  need(given.node.has_value(), "--node-rank R (0 on the first host)");
  need(!hosts.address.empty(), "--master-addr ADDRESS of host 0");
  need(options.master_port.has_value(), "--master-port PORT");
  need(!hosts.secret.empty(), "--run-secret FILE, made once by: mlaunch secret FILE");
  if (!missing.empty())
    throw InvalidArgument(given.count_by + " also needs, on each host: " + missing);
  if (*given.node >= hosts.count)
    throw InvalidArgument(
        fmt::format("--node-rank {}: with --nnodes {} hosts have the numbers 0 to {}", *given.node,
                    hosts.count, hosts.count - 1));
  hosts.node = *given.node;
  hosts.coordinates = *given.node == 0 && !given.is_agent;
  hosts.port = *options.master_port;
  options.master_port.reset();  // ranks get another one
}

}  // namespace

static void settle_any_hosts(const GivenHosts& given, Options& options) {
  Options::Hosts& hosts = options.hosts;
  if (!hosts.listed.empty()) return settle_listed_hosts(given, options);
  hosts.count = given.count.value_or(1);
  if (hosts.count == 1 && !given.is_agent) {
    if (!hosts.address.empty() && !is_this_host(hosts.address))
      throw InvalidArgument(fmt::format(
          "--master-addr {} is another host, and --nnodes does not say how many there are",
          hosts.address));
    if (given.node.value_or(0) != 0)
      throw InvalidArgument(fmt::format(
          "--node-rank {}: --nnodes does not say that there are several hosts", *given.node));
    return;
  }
  settle_joining_host(given, options);
}

void settle_hosts(const GivenHosts& given, Options& options) {
  settle_any_hosts(given, options);
  Options::Hosts& hosts = options.hosts;
  hosts.least = given.count ? given.least : hosts.count;
  if (!given.elastic_by.empty() && hosts.least == hosts.count)
    throw InvalidArgument(given.elastic_by +
                          " says how many ranks there may be; also give --nnodes MIN:MAX, the "
                          "number of hosts");
}

}  // namespace strata::launcher
