// Ordered collectives over memory that peers can read: each rank publishes the place of its operand
// and fetches what it needs. One implementation for threads and processes.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/arena_table.h"
#include "comm/host_communicator.h"
#include "comm/peer_memory/board.h"
#include "comm/peer_memory/peer_link.h"

namespace strata::comm {

/// Every wait sleeps on a futex, ends with PeerError on abort, and checks every 200 ms whether the
/// rank must end or a peer died. A collective has two barriers: operands are published before the
/// first and are free after the second. A rank whose collective fails leaves it only when no peer
/// reads its memory any more, so a rank thread may then destroy its arena.
class PeerCommunicator final : public HostCommunicator {
 public:
  /// Does not wait: the ranks meet in their first collective.
  PeerCommunicator(std::unique_ptr<PeerLink> link, int rank, int world);
  ~PeerCommunicator() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return world_; }
  [[nodiscard]] std::string_view backend() const override { return link_->backend(); }
  void register_arena(const ArenaRegion& region) override;
  void unregister_arena(const std::byte* base) override;
  [[nodiscard]] Exchange exchange() const override { return Exchange::peer_memory; }
  void abort(const std::string& reason, ExitCode code) noexcept override;
  void check() override;
  void close() override;

 private:
  void execute(kernels::Stream& stream, const Collective& collective, const std::byte* input,
               std::byte* output, std::span<std::byte> workspace) override;

  /// All ranks' mappings of one arena, by rank; empty when it is unregistered.
  using Mappings = std::vector<std::span<const std::byte>>;

  // Waiting (peer_communicator.cpp).
  /// Runs `step`; an exception from it kills the communicator on all ranks and is rethrown.
  void begin(std::string_view what, const std::function<void()>& step);
  void leave_failed(std::string_view reason) noexcept;
  void barrier();
  /// Allows reading the peers' operands until the next barrier; throws PeerError if aborted.
  void begin_reading();
  void wait(WakeWord& word, std::uint32_t seen, int from_peer, int to_peer);
  void look_for_the_dead(WakeWord& word, std::uint32_t seen, int from_peer, int to_peer);
  void unmap_peers(Mappings& mappings) noexcept;

  // Operands.
  [[nodiscard]] const std::byte* peer_operand(const Publication& publication, int peer) const;
  [[nodiscard]] Publication publication_of(const Collective& collective, const void* operand,
                                           std::int64_t bytes, const char* role) const;
  /// Publishes the operand, meets the others and checks that all run the same collective. Returns
  /// all operands by rank, valid until the next exchange.
  std::span<const std::byte*> exchange(const Collective& collective, const std::byte* operand,
                                       std::int64_t bytes);

  // The collectives (collectives.cpp).
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

  std::unique_ptr<PeerLink> link_;
  Board board_;
  int rank_;
  int world_;
  ArenaTable arenas_;
  std::vector<Mappings> mappings_;  ///< index: the arena's number
  std::uint64_t exchanges_ = 0;
  std::vector<const std::byte*> operands_;  ///< operands of the last exchange, by rank
  std::string what_;                        ///< the collective under way, for messages
  bool closed_ = false;
};

}  // namespace strata::comm
