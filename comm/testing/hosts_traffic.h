// Holds the bytes between hosts to the least that two levels need.
#pragma once

#include <cstdint>

#include "comm/hosts/hosts_communicator.h"

namespace strata::comm {

/// Bytes that collectives sent to other hosts, over all ranks, and the least possible.
struct HostsTraffic {
  std::int64_t sent = 0;
  std::int64_t least = 0;
};

/// Collective: runs all-gathers and reduce-scatters of several types with large pieces.
HostsTraffic measure_traffic(HostsCommunicator& communicator, const HostLayout& layout);

}  // namespace strata::comm
