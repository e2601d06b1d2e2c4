// Chooses the communicator of a run.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "comm/host_layout.h"
#include "core/rank_context.h"

namespace strata::comm {

/// Collective over all ranks of `context`. `backend` is "shm" (one host; needs the launcher's
/// store), "hosts" (several that share a store; loads libstrata_gloo.so), "mpi" (loads
/// libstrata_mpi.so), "single" (one rank), or "auto": single for one rank, with a store shm when
/// all ranks are on this host and hosts when the launcher said which are where, else mpi. Throws
/// InvalidArgument for a backend that cannot serve this context, and names one that can;
/// ConfigError when hosts does not know this host's address; HostError when a module or its library
/// is missing; PeerError when a rank does not come. `watch` (null: none) outlives the communicator.
std::unique_ptr<Communicator> make_communicator(const RankContext& context,
                                                std::string_view backend, Watch* watch = nullptr);

/// Makes communicators of `world` ranks that are threads of this process; element r is for rank r's
/// thread. The ranks meet in their first collective.
std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int world);
/// The same for threads that play hosts: only ranks of one host read one another's memory.
std::vector<std::unique_ptr<Communicator>> make_thread_communicators(const HostLayout& layout);

}  // namespace strata::comm
