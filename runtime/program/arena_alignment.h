// Where a root may begin in an arena, and what it takes there.
#pragma once

#include <cstdint>

#include "runtime/graph/tier.h"

namespace strata::runtime {

/// Offsets, sizes and addresses of transfers are multiples of this, bytes.
inline constexpr std::int64_t kDiskAlignment = 4096;

/// Alignment of every root in an arena, bytes: a cache line, and what AVX-512 loads like. What the
/// disk reads and writes starts at the disk's own.
inline constexpr std::int64_t kArenaAlignment = 64;
constexpr std::int64_t alignment_of(Tier tier) {
  return tier == Tier::disk || tier == Tier::pinned ? kDiskAlignment : kArenaAlignment;
}
/// `bytes` rounded up to what a root of that size takes in the tier's arena.
constexpr std::int64_t room_of(std::int64_t bytes, Tier tier) {
  return (bytes + alignment_of(tier) - 1) / alignment_of(tier) * alignment_of(tier);
}

}  // namespace strata::runtime
