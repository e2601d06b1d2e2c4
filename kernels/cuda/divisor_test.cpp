#include "kernels/cuda/divisor.h"

#include <gtest/gtest.h>

#include <random>

namespace strata::cuda {
namespace {

void expect_divides(std::int64_t divisor, std::int64_t n) {
  const Divisor::Parts parts = Divisor(divisor).divide(n);
  ASSERT_EQ(parts.quotient, n / divisor) << n << " / " << divisor;
  ASSERT_EQ(parts.remainder, n % divisor) << n << " / " << divisor;
}

TEST(Divisor, DividesAsTheMachineDoes) {
  constexpr std::int64_t kBorder = std::int64_t{1} << 31;
  std::mt19937_64 random(3);
  const auto below = [&](int bits) {
    return static_cast<std::int64_t>(random() >> 1 >> (63 - bits));
  };
  for (int divisor_bits = 0; divisor_bits <= 40; ++divisor_bits)
    for (int i = 0; i < 100; ++i) {
      const std::int64_t power = std::int64_t{1} << divisor_bits;
      const std::int64_t divisor = i == 0   ? power
                                   : i == 1 ? power + 1
                                            : power + below(divisor_bits);
      for (int bits = 0; bits <= 62; ++bits) {
        const std::int64_t multiple = below(bits) / divisor * divisor;
        for (const std::int64_t n : {below(bits), multiple, multiple + divisor - 1})
          expect_divides(divisor, n);
      }
      for (const std::int64_t n : {kBorder - 1, kBorder, kBorder + 1}) expect_divides(divisor, n);
    }
  for (std::int64_t divisor = kBorder - 3; divisor < kBorder + 3; ++divisor)
    for (const std::int64_t n : {kBorder - 1, kBorder, kBorder + 1}) expect_divides(divisor, n);
}

}  // namespace
}  // namespace strata::cuda
