// The job of Slurm that mlaunch runs in, as its variables tell of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/command/host_list.h"
#include "launcher/command/surroundings.h"

namespace strata::launcher {

/// Returns how many nodes the job has; nullopt: mlaunch runs in none, or in a step that is not
/// told. Throws ConfigError for variables that are no numbers.
std::optional<int> nodes_of_slurm_job(const Surroundings& surroundings);

/// Which part of a step of srun mlaunch is.
struct SlurmTask {
  int number = 0;
  int tasks = 1;
};
/// nullopt: srun has not started mlaunch; a batch script or an interactive shell has. Throws
/// ConfigError for variables that are no numbers.
std::optional<SlurmTask> task_of_srun(const Surroundings& surroundings);

/// True if a job may start again, by what `scontrol show job` says of it: one that scancel ends may
/// not, one that runs or is at its time limit may.
bool may_start_again(std::string_view shown);

/// Returns the nodes of the job, with the ranks that it is made for: GPUs of a node, else its
/// tasks; 0: neither was asked for. Throws ConfigError that names both variables if two contradict
/// one another, HostError if `scontrol` does not know the list.
std::vector<ListedHost> hosts_of_slurm_job(const Surroundings& surroundings);

}  // namespace strata::launcher
