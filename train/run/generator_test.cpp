#include "train/run/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace strata::train {
namespace {

std::vector<std::int32_t> generated(double temperature, std::int64_t among) {
  Generator generator({.model = STRATA_GOLDEN "/gpt2", .temperature = temperature});
  generator.choose_among(among);
  std::vector<std::int32_t> tokens{0};
  for (int i = 0; i < 20; ++i) tokens.push_back(generator.next(tokens));
  return tokens;
}

TEST(Generator, ChoosesAmongTheTokensThatItMayTake) {
  constexpr std::int64_t kFew = 5, kAll = 1 << 20;
  for (const double temperature : {0.0, 5.0}) {
    EXPECT_LT(std::ranges::max(generated(temperature, kFew)), kFew);
    EXPECT_GE(std::ranges::max(generated(temperature, kAll)), kFew) << "of the whole vocabulary";
  }
}

}  // namespace
}  // namespace strata::train
