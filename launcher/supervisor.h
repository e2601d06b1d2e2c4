// Runs the ranks of this host: carries out what the state machine decides and tells it what
// happens.
#pragma once

#include <string>

#include "launcher/options.h"

namespace strata::launcher {

struct Run {
  Options options;
  std::string program_path;
  std::string run_id;
  std::string host;
  int master_port = 0;
  std::string visible_devices;  ///< CUDA_VISIBLE_DEVICES of the ranks; empty: mlaunch's own
};

/// Starts the ranks; returns mlaunch's exit code when no process of them is left. Call it from the
/// only thread of the process.
int supervise(const Run& run);

}  // namespace strata::launcher
