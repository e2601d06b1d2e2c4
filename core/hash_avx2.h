// XXH3 for processors with AVX2: the same values, three times as fast. Private to hash.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/hash.h"

namespace strata::detail {

std::uint64_t hash_64_avx2(const void* data, std::size_t bytes);
Hash128 hash_128_avx2(const void* data, std::size_t bytes, std::uint64_t seed);

}  // namespace strata::detail
