// The mpirun command that replaces mlaunch with `--launcher mpi`.
#pragma once

#include <string>
#include <vector>

#include "launcher/command/options.h"

namespace strata::launcher {

/// Returns mpirun's command line, "mpirun" first. `as_root` adds --allow-run-as-root.
std::vector<std::string> mpi_command(const Options& options, const std::string& program,
                                     bool as_root);

}  // namespace strata::launcher
