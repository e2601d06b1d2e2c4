// Collectives over Open MPI: bytes travel point to point, sums are our own, so that bits equal
// those of every other backend.
#pragma once

#include <mpi.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <span>

#include "comm/arena_table.h"
#include "comm/communicator.h"

namespace strata::comm {

/// MPI is initialized for MPI_THREAD_SERIALIZED by whoever constructs this, and then called only by
/// the thread of the communication queue (and by `abort`, one at a time). MPI starts and ends once
/// per process: there can be one communicator, and `close` finalizes MPI.
class MpiCommunicator final : public Communicator {
 public:
  /// Collective. Throws ConfigError when MPI's world is not `world` ranks with this one as `rank`.
  MpiCommunicator(int rank, int world);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return world_; }
  [[nodiscard]] std::string_view backend() const override { return "mpi"; }
  void register_arena(const ArenaRegion& region) override;
  void unregister_arena(const std::byte* base) override;
  [[nodiscard]] std::int64_t workspace_bytes(const Collective& collective) const override;
  void run(kernels::Stream& stream, const Collective& collective, const std::byte* input,
           std::byte* output, std::span<std::byte> workspace) override;
  void abort(const std::string& reason, ExitCode code) noexcept override;
  void close() override;

 private:
  /// Where rank r's bytes come from or go to.
  using Piece = std::function<std::span<std::byte>(int peer)>;

  /// Sends every other rank a piece and receives one from each; the own piece is the caller's.
  void exchange(const std::string& what, const Piece& outgoing, const Piece& incoming);
  void all_gather(const Collective& collective, const std::byte* input, std::byte* output);
  void reduce_scatter(const Collective& collective, const std::byte* input, float* output,
                      std::span<std::byte> workspace);
  void all_reduce(const Collective& collective, std::byte* data);
  void broadcast(const Collective& collective, std::byte* data);
  void all_to_all(const Collective& collective, const std::byte* input, std::byte* output);
  void send(const Collective& collective, const std::byte* input);
  void receive(const Collective& collective, std::byte* output);
  void barrier(const std::string& what);

  int rank_;
  int world_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::mutex mutex_;  ///< held during every MPI call
  std::atomic<bool> aborted_{false};
  bool failed_ = false;
  bool closed_ = false;
  ArenaTable arenas_;
};

}  // namespace strata::comm
