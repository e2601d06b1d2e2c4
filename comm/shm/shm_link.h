// The link of ranks that are processes of one host: arenas and the board are memfds that all map.
#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "comm/mapped_file.h"
#include "comm/peer_memory/peer_link.h"
#include "core/rank_context.h"

namespace strata::comm {

/// Rank 0 of the host makes the board. Descriptors and process ids travel through the store, under
/// keys that begin with "host/comm/": stores of several hosts keep such keys on their host. A pidfd
/// of each peer tells when it ends.
class ShmLink final : public PeerLink {
 public:
  /// Collective over the `world` ranks of this host, numbered from 0. Throws PeerError when a rank
  /// does not come within `start_limit`.
  ShmLink(std::shared_ptr<KeyValueStore> store, int rank, int world,
          std::chrono::milliseconds start_limit);

  [[nodiscard]] std::string_view backend() const override { return "shm"; }
  [[nodiscard]] std::byte* board_memory() const override { return board_.memory().data(); }
  void offer(int arena, const ArenaRegion& region) override;
  void withdraw(int arena) override;
  std::span<const std::byte> map(int peer, int arena, std::byte* base_in_peer,
                                 std::int64_t bytes) override;
  void unmap(int peer, std::span<const std::byte> mapping) noexcept override;
  [[nodiscard]] bool maps_in_place() const override { return false; }
  [[nodiscard]] std::string death_of(int peer) const override;

 private:
  std::shared_ptr<KeyValueStore> store_;
  int rank_;
  std::chrono::milliseconds start_limit_;
  MappedFile board_;
  std::vector<UniqueFd> processes_;  ///< pidfds by rank, -1 for this rank
  std::vector<MappedFile> arenas_;   ///< mappings that map() made
};

}  // namespace strata::comm
