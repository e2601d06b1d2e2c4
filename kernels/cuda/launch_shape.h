// Shapes of launches, limits of devices, and packs of elements, for host and device code.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace strata::cuda {

struct Index3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

/// The grid of a launch. Blocks are one-dimensional, of Body::kThreads threads.
struct LaunchShape {
  Index3 grid;
  std::int64_t shared_bytes = 0;  ///< dynamic shared memory per block
};

inline constexpr int kWarp = 32;
inline constexpr std::uint32_t kWholeWarp = 0xFFFFFFFFu;
/// The dynamic shared memory, in bytes, that a block may have on every architecture: sm_89 and
/// sm_120 have the least.
inline constexpr std::int64_t kSharedBytesEverywhere = 99 * 1024;
/// The most that a block may have on any architecture (sm_80: 163 KiB, sm_90 and sm_100: 227 KiB).
inline constexpr std::int64_t kSharedBytesMost = 227 * 1024;

/// N consecutive elements that one instruction moves, at most 16 bytes.
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  static_assert(sizeof(T) * N <= 16 && std::has_single_bit(sizeof(T) * N));
  T v[N];
};

}  // namespace strata::cuda
