// The meeting of the ranks of one host that mlaunch did not start (torchrun, accelerate): rank 0
// serves the run's store on an abstract Unix socket, which disappears with its process.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "core/rank_context.h"

namespace strata {

struct HostMeeting {
  std::string place;  ///< a name that these ranks share and other runs of this user do not use
  int rank = 0;
  int world = 1;
  std::string prefix;                          ///< text before every key
  std::chrono::milliseconds patience{60'000};  ///< longest wait for rank 0 to appear
};

/// Rank 0 serves the store from this call until the store is destroyed, in a thread that blocks all
/// signals. Other ranks connect in their first call to the store; that call throws PeerError if
/// rank 0 does not appear, and ConfigError if rank 0 refuses (another world, or that rank is
/// present already). Throws ConfigError if another run of this user meets at the same place. Only
/// processes of the same user can connect.
std::shared_ptr<KeyValueStore> meet_on_host(const HostMeeting& meeting);

}  // namespace strata
