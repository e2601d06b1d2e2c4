// The environment variables that tell a program which rank it is (read by core/rank_context.cpp).
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace strata::launcher {

struct RankIdentity {
  int rank = 0;
  int world = 1;
  std::string run_id;
  std::string host;
  std::chrono::seconds grace{0};  ///< time from SIGTERM to SIGKILL
  int store_fd = -1;
  int status_fd = -1;
  bool output_on_terminal = false;  ///< true if its standard output reaches a terminal
  bool error_on_terminal = false;
  int master_port = 0;
  std::string visible_devices;  ///< CUDA_VISIBLE_DEVICES; empty: inherited
};

/// Returns `inherited` ("NAME=value") with the variables of this rank instead of another rank's,
/// for Strata's programs and, as RANK, WORLD_SIZE and so on, for others.
std::vector<std::string> rank_environment(const std::vector<std::string>& inherited,
                                          const RankIdentity& identity);

}  // namespace strata::launcher
