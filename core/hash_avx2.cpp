// Compiled for AVX2: do not instantiate here anything that other sources share.
#include "core/hash_avx2.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace strata::detail {

std::uint64_t hash_64_avx2(const void* data, std::size_t bytes) { return XXH3_64bits(data, bytes); }

Hash128 hash_128_avx2(const void* data, std::size_t bytes, std::uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(data, bytes, seed);
  return {hash.low64, hash.high64};
}

}  // namespace strata::detail
