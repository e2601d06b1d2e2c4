#include "comm/mpi/mpi_module.h"

#include "core/own_files.h"

namespace strata::comm {

std::unique_ptr<Communicator> make_mpi_communicator(int rank, int world) {
  const auto entry = reinterpret_cast<MpiModuleEntry>(
      module_entry({.file = "libstrata_mpi.so",
                    .entry = kMpiModuleEntry,
                    .purpose = "communication over MPI",
                    .if_missing = "build Strata with libopenmpi-dev installed, or start the ranks "
                                  "with mlaunch",
                    .if_refused = "is Open MPI installed (Debian: openmpi-bin)?"}));
  return std::unique_ptr<Communicator>(entry(rank, world));
}

}  // namespace strata::comm
