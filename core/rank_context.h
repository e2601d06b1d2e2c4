// The identity of this process among the ranks of a run. rank_context.cpp alone reads the
// environment variables of mlaunch, Open MPI, Slurm and torchrun, or finds a plain start.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/unique_fd.h"

namespace strata {

class StatusPage;

/// The run's small shared dictionary: bootstrap addresses, fingerprints, file descriptors. Ranks of
/// several hosts share one, but for descriptors and keys that begin with "host/", which stay on
/// their host. Keys carry run id and attempt (the client adds them). A get sleeps until the key
/// exists; after `timeout` it throws PeerError that names the key.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  virtual void put(const std::string& key, const std::string& value) = 0;
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;
  /// Hands a file descriptor to other processes of this host (SCM_RIGHTS).
  virtual void put_fd(const std::string& key, int fd) = 0;
  virtual UniqueFd get_fd(const std::string& key, std::chrono::milliseconds timeout) = 0;
  /// Forgets a descriptor, so that neither it nor its memory is kept any longer; of a key that is
  /// not there, nothing happens. Call it once all who want the descriptor have got it.
  virtual void drop_fd(const std::string& key) = 0;
};

/// Makes a store inside one process, for rank threads and single ranks.
std::shared_ptr<KeyValueStore> make_local_store();

struct RankContext {
  int rank = 0;
  int world = 1;
  int local_rank = 0;
  int local_world = 1;
  /// Ranks of the host that has most of them; 0: not known. Hosts may have unlike numbers.
  int most_local_world = 0;
  int node = 0;  ///< number of this host among those of the run; 0 if the launcher did not say
  /// First rank of each host, in order; empty if the launcher did not say.
  std::vector<int> first_ranks;
  /// Returns by how many ranks a Plan divides what those of a host share, so that all plan alike.
  [[nodiscard]] int planned_local_world() const { return std::max(local_world, most_local_world); }
  std::string host;  ///< name as the launcher gave it
  /// IP address of this host that other hosts reach (STRATA_HOST_ADDRESS), and the interface that
  /// has one (STRATA_INTERFACE); "" if not given.
  std::string host_address;
  std::string network_interface;
  std::string run_id;
  int attempt = 0;              ///< start of the run that this rank belongs to, from 0
  bool is_elastic = false;      ///< rank 0 is to say how many ranks the run may have (kWorldsKey)
  std::int64_t last_step = -1;  ///< the last step that an earlier attempt was seen in; -1: none
  /// Time to wait for an earlier attempt's last process to let go of the output folder; nullopt:
  /// not said.
  std::optional<std::chrono::seconds> lock_wait;
  /// Longest wait for a rank that has not started yet. mlaunch looks after that itself, and ends
  /// ranks that wait in vain (--hang-timeout): its ranks wait for a day.
  std::chrono::milliseconds start_limit{60'000};
  std::string started_by;                ///< "mlaunch", "openmpi", "slurm", "torchrun", "none"
  std::shared_ptr<KeyValueStore> store;  ///< nullptr for several ranks of mpirun or srun
  std::chrono::seconds grace{0};         ///< time until SIGKILL follows a SIGTERM; 0: not known
  int status_fd = -1;  ///< memfd of the status page, owned by the launcher; -1: the rank makes one
  StatusPage* page = nullptr;  ///< the opened page, which outlives the run; null: nobody watches
  bool stdout_is_terminal =
      false;  ///< true if what this rank prints reaches a terminal, through mlaunch too
  bool stderr_is_terminal = false;
};

/// Reads the environment. Throws ConfigError that names variable and value when variables
/// contradict, or when they say that there are more ranks than can find one another. Call it once
/// per process: under mlaunch it takes over the inherited connection to the rendezvous; under
/// torchrun rank 0 begins to serve the rendezvous.
RankContext rank_context_from_environment();

}  // namespace strata
