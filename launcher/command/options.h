// mlaunch's command line. Its own options end at the program's name; the rest is the program's.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launcher/command/device_choice.h"
#include "launcher/command/host_list.h"
#include "launcher/command/surroundings.h"
#include "launcher/control/reach.h"
#include "launcher/control/restart_policy.h"
#include "launcher/control/worlds.h"

namespace strata::launcher {

struct Options {
  /// The program that starts ranks (local), or the agents of other hosts: ssh (local), srun,
  /// mpirun. With mpi and no list of hosts mpirun starts the ranks.
  enum class Launcher { local, mpi, slurm };

  int ranks = 1;
  bool ranks_given = false;  ///< false: one rank per chosen device, if any
  DeviceRequest devices;
  Launcher launcher = Launcher::local;
  std::vector<std::string> launcher_arguments;  ///< more arguments for mpirun, srun
  bool prefix = true;                       ///< put "[3] " before the lines of rank 3 if ranks > 1
  std::chrono::milliseconds grace{30'000};  ///< time for ranks to stop by themselves after SIGTERM
  RestartPolicy::Limits restarts;           ///< when the ranks start again after a failure
  std::chrono::seconds hang_timeout{30};    ///< without progress of any rank; 0: wait for ever
  std::string log_directory;                ///< keeps what ranks print; empty: nobody does
  std::optional<int> web_port;              ///< of the run's page on 127.0.0.1; 0: any
  std::string network_interface;            ///< of ranks on several hosts; empty: nobody says
  std::optional<int> master_port;           ///< MASTER_PORT of the ranks; nullopt: a free one
  /// The hosts of the run. Either each has an mlaunch of its own that was given the same, or this
  /// one starts those of the others.
  struct Hosts {
    int count = 1;                            ///< the most there may be
    int least = 1;                            ///< with which the run starts and goes on
    Worlds::Range worlds = {};                ///< number of ranks that it may have
    std::chrono::seconds join{Reach::kJoin};  ///< time that hosts have to come at first
    std::chrono::seconds rejoin{60};          ///< time that lost hosts have to come back
    /// The run ends because of a host that cannot come once it is known of all others, too.
    bool names_all_missing = false;
    int node = 0;             ///< number of this host; -1: it has no ranks
    bool coordinates = true;  ///< this mlaunch watches over the run
    std::string address;      ///< of the host that does, as the others reach it; may be empty
    int port = 0;             ///< at which that one listens; 0: any
    std::string secret;       ///< file with the secret of the run; "-": standard input
    std::vector<ListedHost> listed = {};  ///< that this mlaunch starts agents on; empty: none
    std::string listed_by = {};           ///< what lists them, for messages: "-H a,b"

    /// True if ranks are elsewhere, too, or only elsewhere.
    [[nodiscard]] bool are_several() const { return count > 1 || node < 0 || !coordinates; }
  };
  Hosts hosts;
  std::string requeued_job;  ///< job of Slurm to start again if the run ends with 75; may be empty
  bool show_help = false;
  bool show_version = false;
  std::vector<std::string> notes;    ///< accepted options without effect, one line each
  std::vector<std::string> command;  ///< program and its arguments; empty with help or version
};

/// Parses `arguments`, which exclude mlaunch's own name; what they leave open may follow from the
/// surroundings. Throws InvalidArgument with one line per wrong option, which says what to do
/// instead, or ConfigError for wrong surroundings.
Options parse_options(const std::vector<std::string>& arguments,
                      const Surroundings& surroundings = {});

/// Returns the text of `mlaunch --help`.
std::string help_text();

}  // namespace strata::launcher
