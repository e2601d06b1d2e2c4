// The one interface of communication. Backends: threads of one process (for tests), shared memory
// of one host, several hosts that share memory within each, Open MPI, NCCL.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "comm/collective.h"
#include "comm/reduction.h"
#include "comm/seat.h"
#include "comm/watch.h"
#include "core/error.h"
#include "kernels/device/stream.h"

namespace strata::comm {

/// Memory that a communicator may touch. Collectives take ranges of registered arenas alone, so
/// that peers can map them (shared memory) or a NIC can pin them.
struct ArenaRegion {
  std::byte* base = nullptr;
  std::int64_t bytes = 0;
  int memfd = -1;  ///< file that is mapped at `base` from offset 0; -1: the memory is private
};

/// Collectives of the ranks along some axes of the mesh. All ranks enqueue the same collectives in
/// the same order, each from one thread (that of the communication queue). After an error the
/// communicator is dead: every later call on any rank throws PeerError.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// Sets who watches this communicator (null: nobody), before its first collective.
  void set_watch(Watch* watch) { watch_ = watch; }
  [[nodiscard]] Watch* watch() const { return watch_; }

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Name of the backend: "threads", "shm", "hosts", "mpi", "nccl" or "single".
  [[nodiscard]] virtual std::string_view backend() const = 0;

  /// Collective over all ranks: tells peers about an arena. Call it before collectives on its
  /// memory. The arena must outlive the communicator or be unregistered. Ranks may differ in size.
  virtual void register_arena(const ArenaRegion& region) = 0;

  /// Collective over all ranks, in the same order everywhere: peers forget the arena that begins at
  /// `base`, so that its memory may be freed afterwards.
  virtual void unregister_arena(const std::byte* base) = 0;

  [[nodiscard]] virtual Exchange exchange() const = 0;
  /// Returns this rank as planning sees it.
  [[nodiscard]] virtual Seat seat() const { return {rank(), size(), exchange()}; }
  /// Bytes of scratch that `run` needs for this collective on this rank.
  [[nodiscard]] std::int64_t workspace_bytes(const Collective& collective) const {
    return comm::workspace_bytes(seat(), collective);
  }

  /// Executes in the order of `stream`: when later work of the stream starts, the output is
  /// complete, and this rank may overwrite the input. A CPU backend blocks (sleeping) until then.
  /// From the second run of a collective on, allocates nothing (MPI itself may). Throws PeerError
  /// when a peer died, any rank called `abort`, or the watch says that this rank must end.
  void run(kernels::Stream& stream, const Collective& collective, const std::byte* input,
           std::byte* output, std::span<std::byte> workspace) {
    begun_.fetch_add(1, std::memory_order_relaxed);
    execute(stream, collective, input, output, workspace);
  }
  /// Number of calls of `run` so far, which is the number of the collective under way. It is the
  /// same on all ranks, and appears in messages and on the status page. Any thread may call.
  [[nodiscard]] virtual std::int64_t begun() const {
    return begun_.load(std::memory_order_relaxed);
  }

  /// Corrects `begun` for recordings: what is recorded does not run, and what a replay runs was
  /// recorded. The thread that communicates calls it.
  void count_replayed(std::int64_t collectives) {
    begun_.fetch_add(collectives, std::memory_order_relaxed);
  }

  /// True if `run` works on the calling thread and returns when all is done. Otherwise `run` only
  /// enqueues on its stream and may be part of a recording (kernels/device/device.h).
  [[nodiscard]] virtual bool runs_on_host() const { return true; }
  /// Collective over all ranks of a communicator that can be recorded (not runs_on_host): true if
  /// `mine` is on all ranks, that they have recorded theirs, or can. Recorded collectives can only
  /// meet recorded ones.
  [[nodiscard]] virtual bool all_have_recorded(bool mine) { return mine; }

  /// Throws PeerError when this communicator or a peer is dead, or the watch says that this rank
  /// must end. Call it while waiting for enqueued collectives, from any thread.
  virtual void check() {}

  /// Makes running and later collectives of all ranks throw PeerError. The message is the first
  /// reason given on any rank, reduced to its first cause and prefixed with the rank at fault
  /// (first_cause.h). Any thread may call. MPI cannot wake ranks: it prints that message and ends
  /// the whole job with `code`.
  virtual void abort(const std::string& reason, ExitCode code = ExitCode::try_again) noexcept = 0;

  /// Collective over all ranks: the last call before destruction. To its peers, a rank that ends
  /// without it has failed. Does nothing on a dead communicator.
  virtual void close() = 0;

 private:
  /// The backend's part of `run`.
  virtual void execute(kernels::Stream& stream, const Collective& collective,
                       const std::byte* input, std::byte* output,
                       std::span<std::byte> workspace) = 0;

  friend class ShownCollective;

  std::atomic<std::int64_t> begun_{0};
  Watch* watch_ = nullptr;
  const char* shown_ = nullptr;  ///< name of the ShownCollective that lives
};

}  // namespace strata::comm
