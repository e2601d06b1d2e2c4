// The border of libstrata_mpi.so, the one part of Strata that links MPI. It is opened when a run
// needs it, so that programs start on machines without MPI.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace strata::comm {

/// Name and type of the module's only entry. Throws what Communicator factories throw; the caller
/// owns the result, and the module stays loaded until the process ends (MPI cannot be unloaded).
inline constexpr const char* kMpiModuleEntry = "strata_make_mpi_communicator";
using MpiModuleEntry = Communicator* (*)(int rank, int world);

/// Finds libstrata_mpi.so beside the program or in ../lib of it, opens it, and lets it make the
/// communicator. Throws HostError saying what is missing: the module or the MPI library.
std::unique_ptr<Communicator> make_mpi_communicator(int rank, int world);

}  // namespace strata::comm
