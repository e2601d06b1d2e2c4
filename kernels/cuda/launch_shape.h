// What a launch is and what devices grant, for host and device code.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace strata::cuda {

struct Index3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

/// What a launch needs besides its arguments. All blocks are one-dimensional: Body::kThreads.
struct LaunchShape {
  Index3 grid;
  std::int64_t shared_bytes = 0;  ///< dynamic shared memory per block
};

inline constexpr int kWarp = 32;
inline constexpr std::uint32_t kWholeWarp = 0xFFFFFFFFu;
/// Dynamic shared memory that sm_89 and sm_120 grant a block; kernels that must run there stay
/// below.
inline constexpr std::int64_t kSharedBytesEverywhere = 99 * 1024;
/// The most that any architecture grants (sm_80: 163, sm_90 and sm_100: 227).
inline constexpr std::int64_t kSharedBytesMost = 227 * 1024;

/// N consecutive elements moved by one instruction; 16 bytes is the widest.
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  static_assert(sizeof(T) * N <= 16 && std::has_single_bit(sizeof(T) * N));
  T v[N];
};

}  // namespace strata::cuda
