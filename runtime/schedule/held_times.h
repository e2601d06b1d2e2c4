// Numbers the times at which lifetimes begin and end.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/schedule/place_lifetimes.h"

namespace strata::runtime {

/// The begin and end of a lifetime, as numbers in the order of all times of its problem.
struct HeldTimes {
  std::int32_t begin, end;
};

/// Returns the numbered times of each lifetime.
std::vector<HeldTimes> number_times(const std::vector<Lifetime>& lifetimes);

/// Number of lifetimes that are compared with one at once.
constexpr std::size_t kHeldBlock = 64;
/// Times of a lifetime that is never held, to fill a block up.
constexpr HeldTimes kNeverHeld{std::numeric_limits<std::int32_t>::max(), 0};

/// Returns a bit per lifetime of a block: 1 if it is held at the same time as `wanted`. Compares
/// without branches, which compilers make vector instructions of; then makes a bit of each byte.
inline std::uint64_t held_with(const HeldTimes& wanted, const std::int32_t* begins,
                               const std::int32_t* ends) {
  std::array<std::uint8_t, kHeldBlock> flags;
  for (std::size_t i = 0; i < kHeldBlock; ++i)
    flags[i] = static_cast<std::uint8_t>(begins[i] < wanted.end) &
               static_cast<std::uint8_t>(ends[i] > wanted.begin);
  static_assert(std::endian::native == std::endian::little, "flags are read as words");
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < kHeldBlock; i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, flags.data() + i, sizeof(word));
    held |= ((word * 0x0102040810204080) >> 56) << i;
  }
  return held;
}

}  // namespace strata::runtime
