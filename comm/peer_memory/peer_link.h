// What differs between ranks that are threads and ranks that are processes: how one gets at
// another's memory, and how one learns that another is dead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "comm/communicator.h"

namespace strata::comm {

class PeerLink {
 public:
  virtual ~PeerLink() = default;
  [[nodiscard]] virtual std::string_view backend() const = 0;
  /// The block of the Board, alive and mapped as long as this link.
  [[nodiscard]] virtual std::byte* board_memory() const = 0;

  /// Lets peers read this rank's arena number `arena` after a barrier. Throws InvalidArgument for
  /// memory that they cannot read.
  virtual void offer(int arena, const ArenaRegion& region) = 0;
  /// Address in this rank of the arena that `peer` offered as `arena` before the last barrier.
  virtual std::span<const std::byte> map(int peer, int arena, std::byte* base_in_peer,
                                         std::int64_t bytes) = 0;
  virtual void unmap(int peer, std::span<const std::byte> mapping) noexcept = 0;
  /// Whether what `map` gave dies with the peer's own arena.
  [[nodiscard]] virtual bool maps_in_place() const = 0;

  /// Empty while `peer` lives as far as one can see; else what became of it.
  [[nodiscard]] virtual std::string death_of(int peer) const = 0;
};

}  // namespace strata::comm
