// mlaunch's command line. Its own options end at the program's name; what follows is the program's.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launcher/device_choice.h"

namespace strata::launcher {

struct Options {
  enum class Launcher { local, mpi };

  int ranks = 1;
  bool ranks_given = false;  ///< else as many as devices are chosen, if any are
  DeviceRequest devices;
  Launcher launcher = Launcher::local;
  std::vector<std::string> launcher_arguments;  ///< for mpirun
  bool prefix = true;                       ///< "[3] " before the lines of rank 3 when ranks > 1
  std::chrono::milliseconds grace{30'000};  ///< time to stop by themselves after SIGTERM
  std::optional<int> master_port;           ///< handed on as MASTER_PORT; else a free one is
  bool show_help = false;
  bool show_version = false;
  std::vector<std::string> notes;    ///< accepted options that do nothing here, one line each
  std::vector<std::string> command;  ///< program and its arguments; empty with help or version
};

/// `arguments` without mlaunch's own name. Throws InvalidArgument with a line per option that is
/// wrong and what to do instead.
Options parse_options(const std::vector<std::string>& arguments);

/// Text of `mlaunch --help`.
std::string help_text();

}  // namespace strata::launcher
