// Alignment of roots in an arena, and the bytes that they take there.
#pragma once

#include <cstdint>

#include "runtime/graph/tier.h"

namespace strata::runtime {

/// Disk transfers: offsets, sizes and addresses are multiples of this many bytes.
inline constexpr std::int64_t kDiskAlignment = 4096;

/// Alignment of every root in an arena, in bytes: a cache line, which also suits AVX-512 loads.
/// What the disk reads and writes is aligned to kDiskAlignment.
inline constexpr std::int64_t kArenaAlignment = 64;
constexpr std::int64_t alignment_of(Tier tier) {
  return tier == Tier::disk || tier == Tier::pinned ? kDiskAlignment : kArenaAlignment;
}
/// Returns the bytes that a root of `bytes` takes in the tier's arena.
constexpr std::int64_t room_of(std::int64_t bytes, Tier tier) {
  return (bytes + alignment_of(tier) - 1) / alignment_of(tier) * alignment_of(tier);
}

}  // namespace strata::runtime
