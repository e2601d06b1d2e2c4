// XXH3 hashes: checksums of stored bytes and digests of state. Not for secrets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace strata {

/// Number of hexadecimal digits of a Hash128.
inline constexpr std::size_t kHashDigits = 32;

/// A 128-bit number: the hash of some bytes, or a sum of hashes.
struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  /// Adds modulo 2^128, so that sums do not depend on their order.
  Hash128& operator+=(const Hash128& other) {
    low += other.low;
    high += other.high + (low < other.low ? 1 : 0);
    return *this;
  }
  friend Hash128 operator+(Hash128 a, const Hash128& b) { return a += b; }
  bool operator==(const Hash128&) const = default;
  /// kHashDigits hexadecimal digits, most significant first.
  [[nodiscard]] std::string hex() const;
};

/// XXH3-128 with `seed`.
Hash128 hash_128(std::span<const std::byte> data, std::uint64_t seed = 0);
/// XXH3-64.
std::uint64_t hash_64(std::span<const std::byte> data);

}  // namespace strata
