// How ranks of one host find one another when mlaunch did not start them (torchrun, accelerate):
// rank 0 serves the run's store on an abstract Unix socket, which is gone with its process.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "core/rank_context.h"

namespace strata {

struct HostMeeting {
  std::string place;  ///< a name that the ranks share and other runs of this user do not
  int rank = 0;
  int world = 1;
  std::string prefix;                          ///< before every key
  std::chrono::milliseconds patience{60'000};  ///< for rank 0 to be there
};

/// Rank 0 serves from this call until the store is gone; a thread does, without the signals of the
/// process. The others connect in their first call to the store and throw PeerError when rank 0
/// does not come, ConfigError when it does not want them: another world, or that rank is there
/// already. Throws ConfigError when another run of this user meets at the same place. Only
/// processes of the same user can connect.
std::shared_ptr<KeyValueStore> meet_on_host(const HostMeeting& meeting);

}  // namespace strata
