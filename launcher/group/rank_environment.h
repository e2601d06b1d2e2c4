// The environment variables that tell a program which rank it is (read by core/rank_context.cpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "launcher/control/placement.h"

namespace strata::launcher {

struct RankIdentity {
  Placement placement;
  int node = 0;  ///< number of this host in the placement
  int local_rank = 0;
  bool is_elastic = false;      ///< rank 0 is to say how many ranks the run may have
  std::int64_t last_step = -1;  ///< that an earlier attempt was seen in; -1: none
  /// For ranks of an earlier attempt to let go of the output folder.
  std::chrono::seconds lock_wait{5};
  std::string run_id;
  std::string host;
  std::chrono::seconds grace{0};  ///< time from SIGTERM to SIGKILL
  int store_fd = -1;
  int status_fd = -1;
  bool output_on_terminal = false;  ///< true if its standard output reaches a terminal
  bool error_on_terminal = false;
  std::string master_address = "127.0.0.1";  ///< of rank 0's host
  int master_port = 0;
  /// Of this host, as the others reach it; empty: there are none. An interface wins, with which
  /// users name another one: this one, or STRATA_INTERFACE in the environment.
  std::string host_address;
  std::string network_interface;
  std::string visible_devices;  ///< CUDA_VISIBLE_DEVICES; empty: inherited
};

/// Returns this process's environment, as "NAME=value".
std::vector<std::string> own_environment();

/// Returns `inherited` ("NAME=value") with the variables of this rank instead of another rank's,
/// for Strata's programs and, as RANK, WORLD_SIZE and so on, for others. What tells of the process
/// that starts the ranks, as a task of Open MPI or Slurm, is left out: libraries would take it for
/// the rank's own. STRATA_LOCK_WAIT in the environment wins.
std::vector<std::string> rank_environment(const std::vector<std::string>& inherited,
                                          const RankIdentity& identity);

}  // namespace strata::launcher
