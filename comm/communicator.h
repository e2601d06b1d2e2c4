// The one interface of communication. Backends: threads in one process (tests), same-host shared
// memory, Open MPI, NCCL.
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
#include "core/error.h"
#include "kernels/device/stream.h"

namespace strata::comm {

/// Memory that a communicator may touch: collectives take ranges of registered arenas only, so that
/// peers can map them (shared memory) or a NIC can pin them.
struct ArenaRegion {
  std::byte* base = nullptr;
  std::int64_t bytes = 0;
  int memfd = -1;  ///< file behind `base` from offset 0; -1 when the memory is private
};

/// Ranks of one mesh axis. All ranks enqueue the same collectives in the same order, from one
/// thread each (the communication queue's). After an error the communicator is dead: every later
/// call on any rank throws PeerError.
class Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// "threads", "shm", "mpi", "nccl", "single"
  [[nodiscard]] virtual std::string_view backend() const = 0;

  /// Collective over all ranks: tells peers about an arena. Must precede collectives on its memory.
  /// The arena must outlive the communicator or be unregistered. Sizes may differ between ranks.
  virtual void register_arena(const ArenaRegion& region) = 0;

  /// Collective over all ranks, in the same order everywhere: peers forget the arena that starts at
  /// `base`, so that its memory may go.
  virtual void unregister_arena(const std::byte* base) = 0;

  [[nodiscard]] virtual Exchange exchange() const = 0;
  /// Describes this rank as planning sees it.
  [[nodiscard]] Seat seat() const { return {rank(), size(), exchange()}; }
  /// Bytes of workspace that `run` needs for this collective on this rank.
  [[nodiscard]] std::int64_t workspace_bytes(const Collective& collective) const {
    return comm::workspace_bytes(seat(), collective);
  }

  /// Executes in the order of `stream`: the output is complete, and the input may be overwritten on
  /// this rank, when later work of the stream starts. A CPU backend blocks (sleeping) until then.
  /// Allocates nothing after the second run of a collective (MPI itself may).
  /// Throws PeerError when a peer died or `abort` was called anywhere.
  void run(kernels::Stream& stream, const Collective& collective, const std::byte* input,
           std::byte* output, std::span<std::byte> workspace) {
    begun_.fetch_add(1, std::memory_order_relaxed);
    execute(stream, collective, input, output, workspace);
  }
  /// Calls of `run` so far: the number of the collective under way, the same on all ranks, in
  /// messages and on the status page. Any thread.
  [[nodiscard]] virtual std::int64_t begun() const {
    return begun_.load(std::memory_order_relaxed);
  }

  /// Whether `run` works on the calling thread and returns when all is done. Otherwise it enqueues
  /// on its stream alone, so that it may be part of a recording (kernels/device/device.h).
  [[nodiscard]] virtual bool runs_on_host() const { return true; }
  /// Collective over all ranks where they may be part of recordings (not runs_on_host): whether all
  /// ranks have made theirs. Recorded collectives meet recorded ones only.
  [[nodiscard]] virtual bool all_have_recorded(bool mine) { return mine; }

  /// Throws PeerError when this communicator is dead or a peer is. For those who wait for enqueued
  /// collectives; any thread.
  virtual void check() {}

  /// Wakes every rank out of a running or later collective with PeerError. Its message is the first
  /// reason given on any rank, reduced to its first cause and with the number of the rank at fault
  /// before it (first_cause.h). Any thread. Under MPI, which cannot wake anybody, it prints that
  /// message and ends the whole job with `code`.
  virtual void abort(const std::string& reason, ExitCode code = ExitCode::try_again) noexcept = 0;

  /// Collective over all ranks: nobody needs anybody any more; only destruction may follow. A rank
  /// that goes without it has failed in the eyes of its peers. Does nothing on a dead communicator.
  virtual void close() = 0;

 private:
  /// `run` of a backend.
  virtual void execute(kernels::Stream& stream, const Collective& collective,
                       const std::byte* input, std::byte* output,
                       std::span<std::byte> workspace) = 0;

  std::atomic<std::int64_t> begun_{0};
};

}  // namespace strata::comm
