// Which hosts a run has, from all that the command line says of them.
#pragma once

#include <optional>
#include <string>

#include "launcher/command/options.h"

namespace strata::launcher {

/// What was typed of hosts. Texts are for messages, as in "--nnodes 2"; empty: it was not typed.
struct GivenHosts {
  std::optional<int> count;  ///< the most
  int least = 1;             ///< of `count`; the same, unless a range was typed
  std::string count_by;
  std::string elastic_by;   ///< what bounds the number of ranks
  std::optional<int> node;  ///< number of this host
  bool is_agent = false;
  std::string listed_by;  ///< what lists hosts: "-H a,b"
  std::string ranks_by;   ///< what says how many ranks a host has
};

/// Settles `options.hosts` as a whole. Throws InvalidArgument for what contradicts or is missing.
void settle_hosts(const GivenHosts& given, Options& options);

}  // namespace strata::launcher
