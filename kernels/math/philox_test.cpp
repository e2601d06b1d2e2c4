#include "kernels/math/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace strata::kernels {
namespace {

// The known answers are those of the authors' Random123 distribution (kat_vectors, philox4x32 10).
TEST(Philox, AgreesWithTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  const std::uint32_t ones = 0xffffffffu;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxBlock{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(
      philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
      (PhiloxBlock{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(Philox, EveryArgumentMatters) {
  const std::int64_t far = std::int64_t{1} << 33;
  std::set<std::uint32_t> words;
  for (const RandomSource& source :
       {RandomSource(1, 2, 3, 4), RandomSource(2, 2, 3, 4), RandomSource(1 + far, 2, 3, 4),
        RandomSource(1, 3, 3, 4), RandomSource(1, 2, 4, 4), RandomSource(1, 2, 3 + far, 4),
        RandomSource(1, 2, 3, 5)})
    for (std::uint64_t position : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4},
                                   std::uint64_t{1} << 34, std::uint64_t{1} << 40})
      words.insert(source.word(position));
  EXPECT_EQ(words.size(), 7u * 5u);
}

TEST(Philox, ThresholdIsTheProbabilityRoundedUp) {
  EXPECT_EQ(dropout_threshold(0), 0u);
  EXPECT_EQ(dropout_threshold(0.5), 0x80000000u);
  EXPECT_EQ(dropout_threshold(0.1), static_cast<std::uint32_t>(std::ceil(0.1 * 0x1p32)));
  EXPECT_EQ(dropout_threshold(1 - 0x1p-40), 0xffffffffu);
}

TEST(Philox, RowsOfABatchTakeTheirSample) {
  const std::int64_t rng[] = {7, 9, 100, 200};
  EXPECT_EQ(random_source(rng, 4, 5, 3).word(11), RandomSource(7, 9, 100, 3).word(11));
  EXPECT_EQ(random_source(rng, 5, 5, 3).word(11), RandomSource(7, 9, 200, 3).word(11));
}

}  // namespace
}  // namespace strata::kernels
