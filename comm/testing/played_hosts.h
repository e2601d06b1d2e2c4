// Hosts that a test plays on one: groups of forked ranks that share no memory and talk over
// loopback.
#pragma once

#include <functional>
#include <vector>

#include "comm/host_layout.h"
#include "comm/testing/played_host_store.h"

namespace strata::comm {

/// Returns the context of a rank as mlaunch's agents would start it, on a host at 127.0.0.1.
RankContext context_of(int rank, const HostLayout& layout, const TemporaryFolder& folder);

/// Forks the ranks of `layout` as run_forked does and expects all to end with 0.
void run_played_hosts(const HostLayout& layout,
                      const std::function<void(const RankContext& context)>& body);

}  // namespace strata::comm
