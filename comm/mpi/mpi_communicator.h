// Collectives over Open MPI: bytes travel point to point; Strata adds them, so that bits equal
// those of every other backend.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <mutex>
#include <span>
#include <vector>

#include "comm/arena_table.h"
#include "comm/host_communicator.h"
#include "comm/mpi/mpi_calls.h"

namespace strata::comm {

/// The constructor initializes MPI for MPI_THREAD_SERIALIZED; then only the thread of the
/// communication queue calls MPI (and `abort`, one at a time). MPI starts and ends once per
/// process: there can be one communicator, and `close` finalizes MPI.
class MpiCommunicator final : public HostCommunicator {
 public:
  /// Collective. Throws ConfigError if MPI's world and rank differ from `world` and `rank`.
  MpiCommunicator(int rank, int world);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return world_; }
  [[nodiscard]] std::string_view backend() const override { return "mpi"; }
  void register_arena(const ArenaRegion& region) override;
  void unregister_arena(const std::byte* base) override;
  [[nodiscard]] Exchange exchange() const override { return Exchange::messages; }
  void check() override { require_not_stopped(watch()); }
  void abort(const std::string& reason, ExitCode code) noexcept override;
  void close() override;

 private:
  void execute(kernels::Stream& stream, const Collective& collective, const std::byte* input,
               std::byte* output, std::span<std::byte> workspace) override;

  /// Sends every other rank a piece and receives one from each; the caller handles the own piece.
  /// `outgoing` and `incoming` map a rank to the span of its bytes.
  template <typename Outgoing, typename Incoming>
  void exchange(const Outgoing& outgoing, const Incoming& incoming);
  /// Begins call(data, bytes, request), named `name`, for each part of `piece` that MPI can count.
  template <typename Call>
  void begin(const char* name, std::span<std::byte> piece, const Call& call);
  /// Begins the call for all elements of the collective, and waits.
  template <typename Call>
  void run_whole(const char* name, const Collective& collective, const std::byte* operand,
                 const Call& call);

  void all_gather(const Collective& collective, const std::byte* input, std::byte* output) override;
  void reduce_scatter(const Collective& collective, const std::byte* input, float* output,
                      std::span<std::byte> workspace) override;
  void all_reduce(const Collective& collective, std::byte* data,
                  std::span<std::byte> workspace) override;
  void broadcast(const Collective& collective, std::byte* data) override;
  void all_to_all(const Collective& collective, const std::byte* input, std::byte* output) override;
  void send(const Collective& collective, const std::byte* input) override;
  void receive(const Collective& collective, std::byte* output) override;
  void meet(const Collective& collective) override;
  void barrier();

  int rank_;
  int world_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::mutex mutex_;  ///< held during every MPI call
  std::atomic<bool> aborted_{false};
  bool failed_ = false;
  bool closed_ = false;
  ArenaTable arenas_;
  std::array<char, kDescriptionBytes> text_{};  ///< describes the collective under way
  MpiRequests requests_{mutex_, aborted_};
  std::vector<const std::byte*> contributions_;  ///< operands of a reduce_scatter, by rank
};

}  // namespace strata::comm
