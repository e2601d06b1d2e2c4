// `mlaunch --launcher mpi`: the mpirun command that takes mlaunch's place.
#pragma once

#include <string>
#include <vector>

#include "launcher/options.h"

namespace strata::launcher {

/// mpirun's command line, "mpirun" first. `as_root`: Open MPI refuses root unless told otherwise.
std::vector<std::string> mpi_command(const Options& options, const std::string& program,
                                     bool as_root);

}  // namespace strata::launcher
