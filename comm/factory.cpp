#include "comm/factory.h"

#include <fmt/core.h>
#include <string>
#include <utility>

#include "comm/gloo/gloo_module.h"
#include "comm/hosts/hosts_communicator.h"
#include "comm/hosts/listen_address.h"
#include "comm/hosts/run_secret.h"
#include "comm/mpi/mpi_module.h"
#include "comm/peer_memory/peer_communicator.h"
#include "comm/shm/shm_link.h"
#include "comm/single.h"
#include "comm/threads/thread_host_link.h"
#include "comm/threads/thread_link.h"

namespace strata::comm {
namespace {

bool fits_shm(const RankContext& context) {
  return context.store != nullptr && context.local_world == context.world;
}

/// True for ranks of several hosts that one launcher's agents started.
bool fits_hosts(const RankContext& context) {
  return context.store != nullptr && context.first_ranks.size() > 1;
}

std::string_view choose(const RankContext& context) {
  if (context.world == 1) return "single";
  if (fits_shm(context)) return "shm";
  return fits_hosts(context) ? "hosts" : "mpi";
}

std::string who(const RankContext& context) {
  return fmt::format("rank {} of {} (started by {}, {} on this host)", context.rank, context.world,
                     context.started_by, context.local_world);
}

std::unique_ptr<Communicator> connect_through_mpi(const RankContext& context) {
  try {
    return make_mpi_communicator(context.rank, context.world);
  } catch (const ConfigError& error) {
    if (context.started_by != "slurm") throw;
    throw ConfigError(
        fmt::format("{}, or let srun tell MPI who its ranks are: srun --mpi=pmix (`srun "
                    "--mpi=list` shows whether it can); on one host mlaunch -np {} needs neither",
                    error.what(), context.world));
  }
}

std::unique_ptr<Communicator> connect_hosts(const RankContext& context) {
  const HostLayout layout{context.first_ranks, context.world};
  auto peers = std::make_unique<ShmLink>(context.store, context.local_rank, context.local_world,
                                         context.start_limit);
  auto hosts =
      make_gloo_link({.rank = context.rank,
                      .layout = layout,
                      .host = context.host,
                      .address = listen_address(context),
                      .run_id = context.run_id,
                      .attempt = context.attempt,
                      .secret = run_secret(*context.store, context.rank, context.start_limit),
                      .store = context.store,
                      .start_limit = context.start_limit});
  return std::make_unique<HostsCommunicator>(std::move(peers), std::move(hosts), layout,
                                             context.rank);
}

std::unique_ptr<Communicator> make(const RankContext& context, std::string_view backend) {
  if (backend == "auto") backend = choose(context);
  if (backend == "single") {
    if (context.world != 1)
      throw InvalidArgument("communication backend 'single' serves one rank, this is " +
                            who(context) + "; use 'auto'");
    return std::make_unique<SingleCommunicator>();
  }
  if (backend == "shm") {
    if (!fits_shm(context))
      throw InvalidArgument(
          "communication backend 'shm' serves the ranks of one host started by mlaunch or "
          "torchrun, this is " +
          who(context) + "; use '" + (fits_hosts(context) ? "hosts" : "mpi") + "'");
    return std::make_unique<PeerCommunicator>(
        std::make_unique<ShmLink>(context.store, context.rank, context.world, context.start_limit),
        context.rank, context.world);
  }
  if (backend == "hosts") {
    if (!fits_hosts(context))
      throw InvalidArgument(
          "communication backend 'hosts' serves ranks that mlaunch started on several hosts, this "
          "is " +
          who(context) + "; use '" + std::string(choose(context)) + "'");
    return connect_hosts(context);
  }
  if (backend == "mpi") return connect_through_mpi(context);
  throw InvalidArgument(fmt::format(
      "unknown communication backend '{}'; known: auto, shm, hosts, mpi, single", backend));
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(const RankContext& context,
                                                std::string_view backend, Watch* watch) {
  std::unique_ptr<Communicator> communicator = make(context, backend);
  communicator->set_watch(watch);
  return communicator;
}

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int world) {
  const std::shared_ptr<std::byte> board = make_thread_board(world);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < world; ++rank)
    communicators.push_back(
        std::make_unique<PeerCommunicator>(std::make_unique<ThreadLink>(board), rank, world));
  return communicators;
}

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(const HostLayout& layout) {
  validate(layout);
  const std::shared_ptr<ThreadHosts> hosts = make_thread_hosts(layout.world);
  std::vector<std::unique_ptr<Communicator>> communicators;
  communicators.reserve(static_cast<std::size_t>(layout.world));
  for (int host = 0; host < layout.hosts(); ++host) {
    const std::shared_ptr<std::byte> board = make_thread_board(layout.ranks(host));
    for (int rank = layout.first(host); rank < layout.end(host); ++rank)
      communicators.push_back(std::make_unique<HostsCommunicator>(
          std::make_unique<ThreadLink>(board), make_thread_host_link(hosts, rank), layout, rank));
  }
  return communicators;
}

}  // namespace strata::comm
