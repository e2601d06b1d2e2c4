#include "kernels/philox.h"

#include <cmath>

#include "core/check.h"

namespace strata::kernels {

PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kPhiloxMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kPhiloxMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key = {key[0] + kPhiloxWeyl0, key[1] + kPhiloxWeyl1};
  }
  return counter;
}

RandomSource::RandomSource(std::int64_t seed, std::int64_t step, std::int64_t sample,
                           std::int64_t operation_key) {
  const auto high = static_cast<std::uint32_t>(static_cast<std::uint64_t>(seed) >> 32);
  key = {static_cast<std::uint32_t>(seed) ^ (high * kPhiloxWeyl1),
         static_cast<std::uint32_t>(step)};
  sample_high = static_cast<std::uint32_t>(static_cast<std::uint64_t>(sample) >> 32) << 8;
  sample_low = static_cast<std::uint32_t>(sample);
  operation = static_cast<std::uint32_t>(operation_key);
}

std::uint32_t dropout_threshold(double p) {
  STRATA_CHECK(p >= 0 && p < 1, "dropout probability", p);
  const double threshold = std::ceil(p * 0x1p32);
  return threshold >= 0x1p32 ? 0xffffffffu : static_cast<std::uint32_t>(threshold);
}

float dropout_scale(double p) { return static_cast<float>(1.0 / (1.0 - p)); }

RandomSource random_source(const std::int64_t* rng, std::int64_t n, std::int64_t sequence,
                           std::int64_t operation_key) {
  return {rng[0], rng[1], rng[2 + n / sequence], operation_key};
}

}  // namespace strata::kernels
