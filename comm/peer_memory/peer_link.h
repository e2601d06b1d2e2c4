// The difference between ranks that are threads and ranks that are processes: how a rank reads
// another's memory, and how it learns that another is dead.
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
  /// Returns the block of the Board, mapped as long as this link lives.
  [[nodiscard]] virtual std::byte* board_memory() const = 0;

  /// Lets peers map this rank's arena number `arena` after a barrier. Throws InvalidArgument for
  /// memory that they cannot map.
  virtual void offer(int arena, const ArenaRegion& region) = 0;
  /// Ends the offer, once all peers have mapped the arena: their mappings stay.
  virtual void withdraw(int arena) = 0;
  /// Maps the arena that `peer` offered as number `arena` before the last barrier.
  virtual std::span<const std::byte> map(int peer, int arena, std::byte* base_in_peer,
                                         std::int64_t bytes) = 0;
  virtual void unmap(int peer, std::span<const std::byte> mapping) noexcept = 0;
  /// True if mappings are the peer's own memory and end with it.
  [[nodiscard]] virtual bool maps_in_place() const = 0;

  /// Returns "" while `peer` seems to be alive; else what became of it.
  [[nodiscard]] virtual std::string death_of(int peer) const = 0;
};

}  // namespace strata::comm
