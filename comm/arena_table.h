// The arenas that one rank has registered; finds the place of an operand in them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace strata::comm {

/// A place that is meaningful on every rank: an arena's number and an offset in it.
struct ArenaPlace {
  std::int32_t arena = -1;  ///< -1: no place, for an operand of 0 bytes
  std::int64_t offset_bytes = 0;
};

/// Numbers follow the order of registration, so they agree on all ranks. Not thread-safe.
class ArenaTable {
 public:
  /// Returns the new arena's number. Throws InvalidArgument for an empty region.
  int add(const ArenaRegion& region);
  /// Removes the registered arena that begins at `base` and returns its number.
  int remove(const std::byte* base);
  /// Finds an operand. Ends the process, naming `collective` and `role`, when it lies in no arena.
  [[nodiscard]] ArenaPlace locate(const void* operand, std::int64_t bytes,
                                  std::string_view collective, const char* role) const;
  /// Returns the bytes that `rank` reads and writes. Ends the process as locate does.
  OperandBytes check_operands(const Collective& collective, int rank, const std::byte* input,
                              const std::byte* output) const;

 private:
  std::vector<ArenaRegion> regions_;  ///< base nullptr: unregistered
};

}  // namespace strata::comm
