#include "core/hash.h"

// Inlined, so that the library chooses its instruction set by this source's flags and is not needed
// at run time.
#define XXH_INLINE_ALL
#include <fmt/core.h>
#include <xxhash.h>

#include "core/hash_avx2.h"

namespace strata {

std::string Hash128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Hash128 hash_128(std::span<const std::byte> data, std::uint64_t seed) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return detail::hash_128_avx2(data.data(), data.size(), seed);
#endif
  const XXH128_hash_t hash = XXH3_128bits_withSeed(data.data(), data.size(), seed);
  return {hash.low64, hash.high64};
}

std::uint64_t hash_64(std::span<const std::byte> data) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return detail::hash_64_avx2(data.data(), data.size());
#endif
  return XXH3_64bits(data.data(), data.size());
}

}  // namespace strata
