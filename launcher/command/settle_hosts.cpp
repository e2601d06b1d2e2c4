#include "launcher/command/settle_hosts.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "core/integer.h"
#include "launcher/command/rank_count.h"
#include "launcher/command/scheduler_hosts.h"

namespace strata::launcher {
namespace {

/// Throws InvalidArgument if what was typed as the address of a host is a URL.
void refuse_url(const std::string& option, const std::string& typed, bool has_port) {
  const std::size_t scheme = typed.find("://");
  if (scheme == std::string::npos) return;
  std::string meant = typed.substr(scheme + 3);
  meant = meant.substr(0, meant.find('/'));
  if (!has_port)
    meant = meant.starts_with('[') ? meant.substr(1, meant.find(']') - 1)
                                   : meant.substr(0, meant.find(':'));
  throw InvalidArgument(fmt::format("{} {}: an address is meant, not a URL{}", option, typed,
                                    meant.empty() ? "" : fmt::format(": {} {}", option, meant)));
}

/// Hosts that this mlaunch starts agents on: the first `--nnodes` of the list.
void settle_listed_hosts(const GivenHosts& given, Options& options) {
  Options::Hosts& hosts = options.hosts;
  if (given.node)
    throw InvalidArgument(
        given.listed_by +
        " starts all hosts; --node-rank is for hosts that are started one by one");
  const auto listed = static_cast<int>(hosts.listed.size());
  if (given.count.value_or(1) > listed)
    throw InvalidArgument(
        fmt::format("--nnodes {}: {} has {}", *given.count, given.listed_by, listed));
  if (given.count) hosts.listed.resize(static_cast<std::size_t>(*given.count));
  hosts.count = static_cast<int>(hosts.listed.size());
  hosts.listed_by = given.listed_by;
  hosts.node = -1;
  const int usual = options.ranks;
  const bool is_usual_given = options.ranks_given;
  for (std::size_t node = 0; node < hosts.listed.size(); ++node) {
    ListedHost& host = hosts.listed[node];
    if (is_usual_given && host.slots != 0 && host.slots != usual)
      throw InvalidArgument(fmt::format("{} contradicts the {} slots of {}; give one of them",
                                        given.ranks_by, host.slots, host.name));
    if (host.slots == 0) host.slots = usual;
    if (given.own_name.empty() ? !is_this_host(host.name) : host.name != given.own_name) continue;
    if (hosts.node >= 0)
      throw InvalidArgument(fmt::format("{}: {} and {} are both this host", given.listed_by,
                                        host.name,
                                        hosts.listed[static_cast<std::size_t>(hosts.node)].name));
    hosts.node = static_cast<int>(node);
    options.ranks = host.slots;
    options.ranks_given = true;
    if (host.devices.empty()) continue;
    options.devices = {.typed = "the slots of " + host.name, .included = host.devices};
  }
  hosts.port = options.master_port.value_or(0);
  options.master_port.reset();
}

/// Takes the address of host 0 as torchrun has it.
void take_rendezvous(const GivenHosts& given, Options& options) {
  const std::string typed = "--rdzv-endpoint " + given.rendezvous;
  const std::size_t colon = std::min(given.rendezvous.rfind(':'), given.rendezvous.size());
  const std::string address = given.rendezvous.substr(0, colon);
  const auto port = parse_integer(std::string_view(given.rendezvous)
                                      .substr(colon)
                                      .substr(colon < given.rendezvous.size() ? 1 : 0));
  if (address.empty() || !port || *port < 1 || *port > 65535)
    throw InvalidArgument(typed + ": expected HOST:PORT, of the host with --node-rank 0");
  if ((!options.hosts.address.empty() && options.hosts.address != address) ||
      options.master_port.value_or(static_cast<int>(*port)) != *port)
    throw InvalidArgument(typed + " contradicts --master-addr or --master-port; give one of them");
  options.hosts.address = address;
  options.master_port = static_cast<int>(*port);
}

/// Gives each host its part of the ranks that accelerate counts.
void share_ranks(GivenHosts& given, Options& options) {
  const int hosts =
      given.count.value_or(static_cast<int>(std::max<std::size_t>(options.hosts.listed.size(), 1)));
  if (*given.all_ranks % hosts != 0)
    throw InvalidArgument(
        fmt::format("{}: these are the ranks of all {} hosts, and no multiple of that; say how "
                    "many each host has with -np",
                    given.all_ranks_by, hosts));
  const int ranks = *given.all_ranks / hosts;
  if (ranks > kMaxRanks)
    throw InvalidArgument(
        fmt::format("{}: a host has at most {} ranks", given.all_ranks_by, kMaxRanks));
  if (options.ranks_given && options.ranks != ranks)
    throw InvalidArgument(
        fmt::format("{} contradicts {}; give one of them", given.all_ranks_by, given.ranks_by));
  options.ranks = ranks;
  options.ranks_given = true;
  given.ranks_by = given.all_ranks_by;
}

/// A host of several that each have an mlaunch of their own.
void settle_joining_host(const GivenHosts& given, Options& options) {
  Options::Hosts& hosts = options.hosts;
  if (!given.count)
    throw InvalidArgument(
        "--agent: another mlaunch watches over the run; also give --nnodes N and what it needs");
  if (options.launcher != Options::Launcher::local)
    throw InvalidArgument(
        "--nnodes does not go with --launcher mpi, unless -H or --hostfile names the hosts");
  if (!given.rendezvous.empty()) take_rendezvous(given, options);
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
    throw InvalidArgument(fmt::format("--node-rank {}: with {} hosts have the numbers 0 to {}",
                                      *given.node, given.count_by, hosts.count - 1));
  hosts.node = *given.node;
  hosts.coordinates = *given.node == 0 && !given.is_agent;
  hosts.port = *options.master_port;
  options.master_port.reset();  // ranks get another one
}

/// Settles the hosts, all of which are known now.
void settle_any_hosts(const GivenHosts& given, Options& options) {
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
    if (!given.rendezvous.empty())
      options.notes.push_back(
          "--rdzv-endpoint has no effect on one host: its ranks meet through "
          "mlaunch");
    if (given.join)
      options.notes.push_back(
          "--rdzv-conf join_timeout has no effect on one host: it waits for no other");
    return;
  }
  if (given.only_this)
    throw InvalidArgument("--standalone contradicts " + given.count_by + ": it is for one host");
  settle_joining_host(given, options);
}

}  // namespace

void settle_hosts(const Surroundings& surroundings, GivenHosts& given, Options& options) {
  refuse_url("--master-addr", options.hosts.address, false);
  refuse_url("--rdzv-endpoint", given.rendezvous, true);
  take_kubeflow_hosts(surroundings, given, options);
  take_slurm_hosts(surroundings, given, options);
  if (given.all_ranks) share_ranks(given, options);
  settle_any_hosts(given, options);
  Options::Hosts& hosts = options.hosts;
  hosts.least = given.count ? given.least : hosts.count;
  if (given.join) hosts.join = *given.join;
  // Who lets hosts go wants the run to go on, even if nothing has been saved.
  if (hosts.least < hosts.count) options.restarts.without_commit = true;
  if (!given.elastic_by.empty() && hosts.least == hosts.count)
    throw InvalidArgument(given.elastic_by +
                          " says how many ranks there may be; also give --nnodes MIN:MAX, the "
                          "number of hosts");
}

}  // namespace strata::launcher
