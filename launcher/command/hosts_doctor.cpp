#include "launcher/command/hosts_doctor.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"

namespace strata::launcher {

void settle_hosts_doctor(Options& options) {
  if (options.command.empty() ||
      std::filesystem::path(options.command.front()).filename() != "doctor" ||
      std::ranges::find(options.command, "--hosts") == options.command.end())
    return;
  if (!options.hosts.are_several() && !options.hosts.listed_by.empty())
    throw InvalidArgument(options.hosts.listed_by +
                          " names this host alone, and doctor --hosts looks at several and at the "
                          "network between them; of this one tells: doctor");
  if (!options.hosts.are_several())
    throw InvalidArgument(
        "doctor --hosts looks at the hosts of a run: name them before it, as the run will have "
        "them, as in mlaunch -H a,b doctor --hosts (or --hostfile, --launcher slurm, --nnodes)");
  options.ranks = 1;
  options.ranks_given = true;
  options.hosts.worlds = {};
  for (ListedHost& host : options.hosts.listed) {
    host.slots = 1;
    host.devices.clear();
  }
  options.restarts.most_restarts = 0;
  options.hosts.names_all_missing = true;
  options.prefix = false;  // rank 0 alone prints
}

}  // namespace strata::launcher
