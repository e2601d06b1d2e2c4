#include "core/hash.h"

// Inlined, so that the library chooses its instruction set by this source's flags and is not needed
// at run time.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <charconv>

#include "core/hash_avx2.h"

namespace strata {

std::string Hash128::hex() const {
  std::string out(32, '0');
  const auto put = [&out](std::uint64_t value, std::size_t begin) {
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
    const auto size = static_cast<std::size_t>(end - digits.data());
    out.replace(begin + 16 - size, size, digits.data(), size);
  };
  put(high, 0);
  put(low, 16);
  return out;
}

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
