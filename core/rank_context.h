// Who this process is among the ranks of a run. One reader (rank_context.cpp) with adapters for
// mlaunch, Open MPI, Slurm, torchrun and a plain start; nothing else reads those environment
// variables.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "core/unique_fd.h"

namespace strata {

/// The run's small shared dictionary: bootstrap addresses, fingerprints, file descriptors. Keys
/// carry run id and attempt (the client adds them). Blocking gets sleep; they throw PeerError
/// naming the key after `timeout`.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  virtual void put(const std::string& key, const std::string& value) = 0;
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;
  /// Hands a file descriptor to other processes of this host (SCM_RIGHTS).
  virtual void put_fd(const std::string& key, int fd) = 0;
  virtual UniqueFd get_fd(const std::string& key, std::chrono::milliseconds timeout) = 0;
};

/// A store inside one process, for rank threads and single ranks.
std::shared_ptr<KeyValueStore> make_local_store();

struct RankContext {
  int rank = 0;
  int world = 1;
  int local_rank = 0;
  int local_world = 1;
  std::string host;  ///< as the launcher gave it
  std::string run_id;
  int attempt = 0;
  std::string started_by;                ///< "mlaunch", "openmpi", "slurm", "torchrun", "none"
  std::shared_ptr<KeyValueStore> store;  ///< nullptr under mpirun / srun until MPI provides one
  std::chrono::seconds grace{0};         ///< from SIGTERM to the launcher's SIGKILL; 0: not known
  int status_fd = -1;  ///< memfd of the status page, owned by the launcher; -1: make one
  bool stdout_is_terminal =
      false;  ///< what this rank prints ends on a terminal, through mlaunch too
  bool stderr_is_terminal = false;
};

/// Reads the environment. Throws ConfigError naming variable and value when they contradict, or say
/// that there are more ranks than could find one another. Call it once per process: under mlaunch
/// it takes over the inherited connection to the rendezvous, under torchrun rank 0 begins to serve
/// one.
RankContext rank_context_from_environment();

}  // namespace strata
