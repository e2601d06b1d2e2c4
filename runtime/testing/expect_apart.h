// Checks places of lifetimes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "runtime/schedule/place_lifetimes.h"

namespace strata::runtime {

inline constexpr std::int64_t kAlignment = 64;  ///< alignment of places in tests

/// Expects multiples of kAlignment within `size` bytes, and no overlap in both time and bytes.
inline void expect_apart(const std::vector<Lifetime>& lifetimes, std::int64_t size) {
  for (std::size_t a = 0; a < lifetimes.size(); ++a) {
    const Lifetime& x = lifetimes[a];
    EXPECT_EQ(x.offset_bytes % kAlignment, 0);
    EXPECT_GE(x.offset_bytes, 0);
    EXPECT_LE(x.offset_bytes + x.bytes, size);
    for (std::size_t b = 0; b < a; ++b) {
      const Lifetime& y = lifetimes[b];
      const bool live_together = x.begin < y.end && y.begin < x.end;
      const bool overlap =
          x.offset_bytes < y.offset_bytes + y.bytes && y.offset_bytes < x.offset_bytes + x.bytes;
      ASSERT_FALSE(live_together && overlap) << a << " and " << b;
    }
  }
}

}  // namespace strata::runtime
