// What mlaunch runs on this host.
#pragma once

#include <sys/resource.h>

#include <string>
#include <vector>

#include "launcher/command/options.h"

namespace strata::launcher {

class LogFolder;
class RecentOutput;

struct Run {
  Options options;
  std::vector<std::string> typed;  ///< words of the command line after mlaunch
  std::string program_path;        ///< empty: it is looked for when ranks start
  std::string run_id;
  std::string host;
  std::string master_address;  ///< MASTER_ADDR of the ranks; empty: this host
  int master_port = 0;
  std::string host_address;        ///< of this host, as the others of the run reach it; empty: none
  rlimit open_files{};             ///< RLIMIT_NOFILE of the ranks
  LogFolder* logs = nullptr;       ///< keeps what ranks print; null: nobody does
  RecentOutput* recent = nullptr;  ///< keeps the last of it for those who ask; null: nobody does
  /// The command that asked the run to end, if it was one and not the signal that it stands for.
  struct Command {
    int signal = 0;     ///< that it stands for; 0: none asked
    std::string words;  ///< "mlaunch stop --now"
  };
  Command ended_by;
  std::string visible_devices;  ///< CUDA_VISIBLE_DEVICES of the ranks; empty: mlaunch's own
};

}  // namespace strata::launcher
