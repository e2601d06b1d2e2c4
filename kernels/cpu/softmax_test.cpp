#include "kernels/cpu/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "hwy/targets.h"

namespace strata::kernels {
namespace {

TEST(Softmax, AgreesWithDoublePrecisionOnEveryInstructionSet) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 10.0F);
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (std::int64_t count : {1, 2, 15, 16, 17, 100, 384}) {
      for (std::int64_t valid : {count, count / 2}) {
        std::vector<float> values(static_cast<std::size_t>(count));
        for (float& value : values) value = normal(random);
        const std::vector<float> before = values;
        const SoftmaxPiece piece = exponentiate(values.data(), count, valid);
        float largest = -std::numeric_limits<float>::infinity();
        double sum = 0;
        for (std::int64_t i = 0; i < valid; ++i)
          largest = std::max(largest, before[static_cast<std::size_t>(i)]);
        for (std::int64_t i = 0; i < count; ++i) {
          const auto at = static_cast<std::size_t>(i);
          const double right =
              i < valid ? std::exp(static_cast<double>(before[at] - largest)) : 0.0;
          EXPECT_NEAR(values[at], right, 3e-7 * right + 1e-37);
          sum += right;
        }
        EXPECT_EQ(piece.largest, largest);
        EXPECT_NEAR(piece.sum, sum, 1e-6 * sum);
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(Softmax, NotANumberReachesTheSum) {
  for (std::int64_t at : {0, 3, 19}) {
    std::vector<float> values(20, 1.0F);
    values[static_cast<std::size_t>(at)] = NAN;
    EXPECT_TRUE(std::isnan(exponentiate(values.data(), 20, 20).sum)) << at;
  }
}

TEST(Softmax, ScalesEveryElement) {
  std::vector<float> values(37, 3.0F);
  scale_row(values.data(), 0.5F, 36);
  for (std::size_t i = 0; i < 36; ++i) EXPECT_EQ(values[i], 1.5F);
  EXPECT_EQ(values[36], 3.0F);
}

}  // namespace
}  // namespace strata::kernels
