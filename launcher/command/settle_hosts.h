// Which hosts a run has, from all that the command line says of them.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launcher/command/options.h"

namespace strata::launcher {

inline constexpr int kMaxHosts = 1024;

/// Holds what the command line says of hosts. Texts are for messages, as in "--nnodes 2"; empty: it
/// was not typed.
struct GivenHosts {
  std::optional<int> count;  ///< the most
  int least = 1;             ///< of `count`; the same, unless a range was typed
  std::string count_by;
  std::string elastic_by;   ///< what bounds the number of ranks
  std::optional<int> node;  ///< number of this host
  bool is_agent = false;
  bool only_this = false;                    ///< no other host takes part
  bool launcher = false;                     ///< a launcher was typed
  std::string rendezvous;                    ///< torchrun's HOST:PORT, as typed
  std::optional<std::chrono::seconds> join;  ///< torchrun's join_timeout
  std::optional<int> all_ranks;              ///< of all hosts, as accelerate counts them
  std::string all_ranks_by;
  std::string own_name;   ///< of this host in the list; empty: its host name
  std::string listed_by;  ///< what lists hosts: "-H a,b"
  std::string ranks_by;   ///< what says how many ranks a host has
};

/// Settles `options.hosts` and the ranks of this host, as a whole. What was not typed may follow
/// from the surroundings, and is then in `given`, too. Throws InvalidArgument for what contradicts
/// or is missing, ConfigError for surroundings that contradict one another.
void settle_hosts(const Surroundings& surroundings, GivenHosts& given, Options& options);

}  // namespace strata::launcher
