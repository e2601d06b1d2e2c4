// `doctor --hosts`: a rank on each host of a run looks at its host, and at the way to the others.
#pragma once

#include <string>

#include "core/rank_context.h"
#include "train/doctor/hosts_report.h"

namespace strata::train {

/// Runs on one rank of each host, all at once, for some seconds. Rank 0 returns the report, others
/// an empty one. `output` is the folder that hosts are to share; empty: none. Host 0 makes a folder
/// in it, and removes that. `own` has what is known of this host besides its network. Throws
/// InvalidArgument unless mlaunch has started one rank on each of several hosts, PeerError when a
/// host goes.
HostsReport check_hosts(const RankContext& context, const HostFacts& own,
                        const std::string& output);

}  // namespace strata::train
