#include "kernels/ops/wide_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace strata::kernels {
namespace {

using Digits = std::array<std::int64_t, AgreedWord::kDigits>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double sum_of(const std::vector<double>& values) {
  Digits digits{};
  for (double value : values) EXPECT_TRUE(wide_add(digits, value)) << value;
  return wide_value(digits);
}

TEST(WideSum, KeepsOneNumberOfAnySizeExactly) {
  for (int exponent = -1074; exponent <= 1023; ++exponent) {
    const double value = std::ldexp(exponent > -1022 ? 1.0 + 0x1p-52 : 1.0, exponent);
    EXPECT_EQ(sum_of({value}), value) << exponent;
  }
  EXPECT_EQ(sum_of({}), 0.0);
  EXPECT_EQ(sum_of({0.0}), 0.0);
  EXPECT_EQ(sum_of({std::numeric_limits<double>::max()}), std::numeric_limits<double>::max());
}

TEST(WideSum, RoundsTheTotalOnceToNearestEven) {
  EXPECT_EQ(sum_of({0x1p53, 1}), 0x1p53);                 // a tie, down to even
  EXPECT_EQ(sum_of({0x1p53, 2, 1}), 0x1p53 + 4);          // a tie, up to even
  EXPECT_EQ(sum_of({0x1p53, 1, 0x1p-1074}), 0x1p53 + 2);  // just above a tie
  EXPECT_EQ(sum_of({1, 0x1p-53, 0x1p-1000}), 1 + 0x1p-52);
  EXPECT_EQ(sum_of({0x1p1023, 0x1p1023}), kInfinity);
}

TEST(WideSum, AgreesWithIntegerArithmetic) {
  __extension__ using Wide = unsigned __int128;
  std::mt19937_64 generator(7);
  for (int round = 0; round < 2000; ++round) {
    Digits digits{};
    Wide exact = 0;
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t mantissa = generator() >> (11 + generator() % 53);
      const int shift = static_cast<int>(generator() % 60);
      ASSERT_TRUE(wide_add(digits, std::ldexp(static_cast<double>(mantissa), shift - 40)));
      exact += static_cast<Wide>(mantissa) << shift;
    }
    ASSERT_EQ(wide_value(digits), std::ldexp(static_cast<double>(exact), -40));
  }
}

TEST(WideSum, OrderAndGroupingDoNotMatter) {
  std::mt19937_64 generator(3);
  std::vector<double> values(5000);
  for (double& value : values)
    value = std::ldexp(static_cast<double>(generator() >> 11),
                       static_cast<int>(generator() % 500) - 300);
  Digits forward{};
  for (double value : values) ASSERT_TRUE(wide_add(forward, value));
  std::shuffle(values.begin(), values.end(), generator);
  std::array<Digits, 3> parts{};
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_TRUE(wide_add(parts[i % 3], values[i]));
  Digits total{};
  for (const Digits& part : parts)
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += part[i];
  EXPECT_EQ(total, forward);
}

TEST(WideSum, HasRoomForTwoBillionAdditions) {
  Digits digits{};
  const double largest_digits = 0x1.fffffffffffffp52;
  ASSERT_TRUE(wide_add(digits, largest_digits));
  for (std::int64_t& digit : digits) digit *= (std::int64_t{1} << 31) - 1;
  EXPECT_EQ(wide_value(digits), 0x1.fffffffbfffffp+83);  // (2^53 - 1) (2^31 - 1), rounded
}

TEST(WideSum, RefusesWhatIsNoSumOfSquares) {
  Digits digits{};
  EXPECT_FALSE(wide_add(digits, kInfinity));
  EXPECT_FALSE(wide_add(digits, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(wide_add(digits, -1.0));
  EXPECT_EQ(digits, Digits{});
}

}  // namespace
}  // namespace strata::kernels
