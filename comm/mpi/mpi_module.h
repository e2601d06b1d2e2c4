// The interface of libstrata_mpi.so, the one part of Strata that links MPI. A run that needs it
// opens it, so that programs start on machines without MPI.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace strata::comm {

/// Name and type of the module's only entry. It throws what Communicator factories throw. The
/// caller owns the result; the module stays loaded until the process ends (MPI cannot be unloaded).
inline constexpr const char* kMpiModuleEntry = "strata_make_mpi_communicator";
using MpiModuleEntry = Communicator* (*)(int rank, int world);

/// Opens libstrata_mpi.so beside the program or in ../lib and makes the communicator. Throws
/// HostError that says what is missing: the module or the MPI library.
std::unique_ptr<Communicator> make_mpi_communicator(int rank, int world);

}  // namespace strata::comm
