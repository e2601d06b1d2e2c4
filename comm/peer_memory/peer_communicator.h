// Ordered collectives over memory that peers can read: each rank publishes the place of its operand
// and fetches what it needs. One implementation for threads and processes.
#pragma once

#include <memory>

#include "comm/host_communicator.h"
#include "comm/peer_memory/peer_group.h"

namespace strata::comm {

/// A collective has two barriers: operands are published before the first and are free after the
/// second. A rank whose collective fails leaves it only when no peer reads its memory any more, so
/// a rank thread may then destroy its arena.
class PeerCommunicator final : public HostCommunicator {
 public:
  /// Does not wait: the ranks meet in their first collective.
  PeerCommunicator(std::unique_ptr<PeerLink> link, int rank, int world)
      : rank_(rank), world_(world), group_(std::move(link), rank, world, *this) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return world_; }
  [[nodiscard]] std::string_view backend() const override { return group_.backend(); }
  void register_arena(const ArenaRegion& region) override { group_.register_arena(region); }
  void unregister_arena(const std::byte* base) override { group_.unregister_arena(base); }
  [[nodiscard]] Exchange exchange() const override { return Exchange::peer_memory; }
  void abort(const std::string& reason, ExitCode code) noexcept override;
  void check() override { group_.check(); }
  void close() override;

 private:
  void execute(kernels::Stream& stream, const Collective& collective, const std::byte* input,
               std::byte* output, std::span<std::byte> workspace) override;

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

  int rank_;
  int world_;
  PeerGroup group_;
};

}  // namespace strata::comm
