// Compiled for AVX2: nothing that another source shares may be instantiated here.
#include "core/hash_avx2.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace strata::detail {

std::uint64_t hash_64_avx2(const void* data, std::size_t bytes) { return XXH3_64bits(data, bytes); }

}  // namespace strata::detail
