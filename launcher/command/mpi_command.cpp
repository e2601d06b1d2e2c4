#include "launcher/command/mpi_command.h"

namespace strata::launcher {

std::vector<std::string> mpi_command(const Options& options, const std::string& program,
                                     bool as_root) {
  std::vector<std::string> command{"mpirun",
                                   "-np",
                                   std::to_string(options.ranks),
                                   "--oversubscribe",
                                   "--bind-to",
                                   "none",
                                   "-x",
                                   "STRATA_RUN_ID"};
  if (options.prefix && options.ranks > 1) command.push_back("--tag-output");
  if (!options.devices.typed.empty() || options.devices.first_devices > 0)
    command.insert(command.end(), {"-x", "CUDA_VISIBLE_DEVICES"});
  if (as_root) command.push_back("--allow-run-as-root");
  command.insert(command.end(), options.launcher_arguments.begin(),
                 options.launcher_arguments.end());
  command.push_back(program);
  command.insert(command.end(), options.command.begin() + 1, options.command.end());
  return command;
}

}  // namespace strata::launcher
