#include <string>

#include "launcher/views/view_options.h"

namespace strata::launcher {
namespace {

constexpr const char* kElsewhere =
    R"(    --at HOST:PORT   ask a run over several hosts, from any machine: HOST and PORT are its
                     --master-addr and --master-port; it also needs
    --run-secret FILE
                     the file that the run was given
)";

constexpr const char* kStatusHelp =
    R"(mlaunch status shows the runs of this user on this host; with RUN, or if there is only one, its
ranks, too: phase, time in it, memory, newest checkpoint and where they are.

    mlaunch status [RUN] [options]

RUN is the id of a run or the beginning of one. Of one that has ended, or whose mlaunch was killed,
it says how or when, what it has saved and where its logs are (mlaunch --log-dir DIR), while it is
among the last 32.

Options
    --json           print JSON (docs/formats/status.md)
    --watch          print again each second until the run ends (without RUN: all runs) or Ctrl-C
)";

constexpr const char* kStopHelp =
    R"(mlaunch stop lets the ranks of a run of this user on this host finish their step, save a
checkpoint and end, as SIGTERM to its mlaunch does: the run ends with code 75. It waits for the end.

    mlaunch stop [RUN] [options]

RUN is the id of a run or the beginning of one (mlaunch status); not needed if there is only one.
A run that was asked before is not asked again. Ranks that are stopped (SIGSTOP) or frozen save
nothing: it names them, and they are killed after 5 s. Saves that fail meanwhile are told. A run
whose mlaunch is itself stopped obeys once that goes on: kill -CONT PID.

Options
    --now            end the ranks at once, as Ctrl-C does; a second time: kill them
    --wait SECONDS   wait for the end at most so long (default: the run's own --grace, after which
                     its ranks are killed, and 10 s; with --now 15 s); 0: do not wait
)";

constexpr const char* kLogsHelp =
    R"(mlaunch logs prints what the ranks of a run of this user on this host have printed, on all hosts
of the run, each line after its rank, and what mlaunch said; with RANK only that of this rank.

    mlaunch logs [RUN] [RANK] [options]

RUN is the id of a run or the beginning of one (mlaunch status); not needed if there is only one. A
single word of up to six digits is a RANK. The last 1 MiB of each rank are kept while the run lives
(less if there are more than 64); lines that have gone are counted. mlaunch --log-dir DIR keeps all,
in files, which are printed rank by rank if RUN has ended.

Options
    -f, --follow     go on until the run ends or Ctrl-C
    -n, --tail N     begin with the last N lines
    --stdout         only what was printed on standard output
    --stderr         only what was printed on standard error
    --json           print JSON, a line for each (docs/formats/status.md)
)";

}  // namespace

std::string view_help(const std::string& command) {
  const std::string first = command == "status" ? kStatusHelp
                            : command == "stop" ? kStopHelp
                                                : kLogsHelp;
  const std::string codes =
      command == "stop"
          ? "Exit codes: 0 the run has ended, now or before (with --wait 0: was asked), 75 not "
            "yet, 2 there is\nno such run, 69 it cannot be reached, 74 the answer cannot be "
            "printed, 78 its secret is another one.\n"
          : "Exit codes: 0 done, 2 there is no such run or rank, 69 it cannot be reached, 74 it "
            "is not printed,\n78 its secret is another one.\n";
  return first + kElsewhere + "    -h, --help       this text\n\n" + codes +
         "It sees runs that mlaunch supervises itself, not those that --launcher "
         "mpi without -H\nor --hostfile hands over to mpirun. A program "
         "that is called\n" +
         command + " starts with: mlaunch -- " + command + "\n";
}

}  // namespace strata::launcher
