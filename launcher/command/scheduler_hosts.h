// Hosts that nobody types, since what started mlaunch says them: Slurm, Kubeflow's trainer.
#pragma once

#include "launcher/command/options.h"
#include "launcher/command/settle_hosts.h"
#include "launcher/command/surroundings.h"

namespace strata::launcher {

/// Takes the hosts of the job of Slurm if --launcher slurm asks for it, or if the job has several
/// and nothing typed says where ranks shall run. Throws InvalidArgument if there is no such job, or
/// srun has started mlaunch several times; ConfigError for variables that contradict one another.
void take_slurm_hosts(const Surroundings& surroundings, GivenHosts& given, Options& options);

/// Takes the place of this host in the run from PET_NNODES and its like, which Kubeflow's trainer
/// sets for torchrun, where it is not typed. Throws ConfigError for values that are no good.
void take_kubeflow_hosts(const Surroundings& surroundings, GivenHosts& given, Options& options);

}  // namespace strata::launcher
