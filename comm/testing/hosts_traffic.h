// Holds the bytes between hosts to the least that two levels need.
#pragma once

#include <cstdint>
#include <functional>

#include "comm/communicator.h"
#include "comm/host_layout.h"

namespace strata::comm {

/// Bytes that collectives sent to other hosts, over all ranks, and the least possible.
struct HostsTraffic {
  std::int64_t sent = 0;
  std::int64_t least = 0;
};

/// Collective: runs all-gathers and reduce-scatters of several types with large pieces. `sent`
/// returns the bytes that this rank has sent to other hosts so far.
HostsTraffic measure_traffic(Communicator& communicator, const HostLayout& layout,
                             const std::function<std::int64_t()>& sent);

}  // namespace strata::comm
