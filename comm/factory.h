// Which communicator a run gets.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "core/rank_context.h"

namespace strata::comm {

/// Collective over all ranks of `context`. `backend`: "shm" (one host, needs the launcher's store),
/// "mpi" (loads libstrata_mpi.so), "single" (a world of one), or "auto": single for one rank, shm
/// when there is a store and all ranks are on this host, else mpi. Throws InvalidArgument for a
/// backend that cannot serve this context, saying which can; HostError when the MPI module or
/// library is missing; PeerError when a rank does not come.
std::unique_ptr<Communicator> make_communicator(const RankContext& context,
                                                std::string_view backend);

/// Communicators of `world` ranks that are threads of this process; element r belongs to rank r's
/// thread. The ranks meet in their first collective call.
std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int world);

}  // namespace strata::comm
