#include "train/data/permutation.h"

#include <bit>

#include "core/check.h"

namespace strata::train {
namespace {

/// Narrow halves need more rounds than the four that suffice in theory for wide ones.
constexpr int kRounds = 12;

/// The finalizer of splitmix64 (Steele, Lea, Flood 2014): a bijection that mixes all bits.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

}  // namespace

Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t stream)
    : size_(static_cast<std::uint64_t>(size)), key_(mix(mix(seed) ^ stream)) {
  STRATA_CHECK(size > 0 && size <= std::int64_t{1} << 62, size);
  const int bits = std::bit_width(size_ - 1);
  half_bits_ = (bits + 1) / 2;
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::uint64_t next = left ^ (mix(mix(key_ + round) ^ right) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

std::int64_t Permutation::operator()(std::int64_t index) const {
  auto value = static_cast<std::uint64_t>(index);
  STRATA_CHECK(value < size_, index);
  // Following a cycle of a bijection leads back below size, at the latest to its start.
  do value = encrypt(value);
  while (value >= size_);
  return static_cast<std::int64_t>(value);
}

}  // namespace strata::train
