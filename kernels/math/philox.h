// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11): random
// numbers as a pure function of what they are for, so masks are made again instead of stored and do
// not depend on ranks, micro-batches, threads, instruction sets or devices.
#pragma once

#include <array>
#include <cstdint>

namespace strata::kernels {

using PhiloxBlock = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53u, kPhiloxMultiplier1 = 0xCD9E8D57u;
constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9u, kPhiloxWeyl1 = 0xBB67AE85u;
constexpr int kPhiloxRounds = 10;

/// The product of two words in full.
struct WordProduct {
  constexpr std::uint64_t operator()(std::uint32_t a, std::uint32_t b) const {
    return std::uint64_t{a} * b;
  }
};

/// The four words of one counter value. A backend may have a better Product.
template <typename Product = WordProduct>
constexpr PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key, Product product = {}) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t product0 = product(kPhiloxMultiplier0, counter[0]);
    const std::uint64_t product1 = product(kPhiloxMultiplier1, counter[2]);
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key = {key[0] + kPhiloxWeyl0, key[1] + kPhiloxWeyl1};
  }
  return counter;
}

/// The source of random numbers of one operation and one sample. The number of an element is word
/// (position % 4) of the block with counter {position / 4 low 32 bits, its next 8 bits | sample
/// bits 32-55, sample low 32 bits, operation key} under key {seed, step}; seeds beyond 32 bits are
/// folded. So a sample has up to 2^42 positions.
struct RandomSource {
  PhiloxKey key{};
  std::uint32_t sample_high = 0;  ///< already in place: bits 8-31 of counter word 1
  std::uint32_t sample_low = 0;
  std::uint32_t operation = 0;

  RandomSource() = default;
  constexpr RandomSource(std::int64_t seed, std::int64_t step, std::int64_t sample,
                         std::int64_t operation_key) {
    const auto high = static_cast<std::uint32_t>(static_cast<std::uint64_t>(seed) >> 32);
    key = {static_cast<std::uint32_t>(seed) ^ (high * kPhiloxWeyl1),
           static_cast<std::uint32_t>(step)};
    sample_high = static_cast<std::uint32_t>(static_cast<std::uint64_t>(sample) >> 32) << 8;
    sample_low = static_cast<std::uint32_t>(sample);
    operation = static_cast<std::uint32_t>(operation_key);
  }
  /// The four words of positions 4 * block ... 4 * block + 3.
  template <typename Product = WordProduct>
  [[nodiscard]] constexpr PhiloxBlock words(std::uint64_t block, Product product = {}) const {
    return philox({static_cast<std::uint32_t>(block),
                   static_cast<std::uint32_t>(block >> 32) | sample_high, sample_low, operation},
                  key, product);
  }
  [[nodiscard]] constexpr std::uint32_t word(std::uint64_t position) const {
    return words(position / 4)[position % 4];
  }
};

/// Returns ceil(p * 2^32), p in [0, 1): dropout keeps an element if its word is at least that.
std::uint32_t dropout_threshold(double p);

/// Returns 1 / (1 - p) in fp32.
float dropout_scale(double p);

/// Returns the source of row `n` (sample n / sequence); `rng` is int64 [2 + B]: seed, step,
/// samples.
constexpr RandomSource random_source(const std::int64_t* rng, std::int64_t n, std::int64_t sequence,
                                     std::int64_t operation_key) {
  return {rng[0], rng[1], rng[2 + n / sequence], operation_key};
}

}  // namespace strata::kernels
