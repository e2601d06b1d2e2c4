// The arenas that one rank has registered, and where in them an operand lies.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace strata::comm {

/// A place that means the same on every rank: number of the arena and offset in it.
struct ArenaPlace {
  std::int32_t arena = -1;  ///< -1: an operand of no bytes, which lies nowhere
  std::int64_t offset_bytes = 0;
};

/// Numbers count registrations, so they agree on all ranks. Not thread-safe.
class ArenaTable {
 public:
  /// The new arena's number. Throws InvalidArgument for a region that is none.
  int add(const ArenaRegion& region);
  /// Forgets the registered arena that begins at `base` and returns its number.
  int remove(const std::byte* base);
  /// Ends the process, naming `collective` and `role`, when the operand lies in no arena.
  [[nodiscard]] ArenaPlace locate(const void* operand, std::int64_t bytes,
                                  std::string_view collective, const char* role) const;
  /// Bytes of what `rank` reads and writes. Ends the process as locate does.
  OperandBytes check_operands(const Collective& collective, int rank, const std::byte* input,
                              const std::byte* output) const;

 private:
  std::vector<ArenaRegion> regions_;  ///< base nullptr: removed
};

}  // namespace strata::comm
