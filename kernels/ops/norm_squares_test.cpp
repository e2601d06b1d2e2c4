#include "kernels/ops/norm_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/ops/step_state.h"
#include "kernels/ops/wide_sum.h"
#include "kernels/testing/kernel_test_support.h"

namespace strata::kernels {
namespace {

using Word = std::vector<std::int64_t>;

Word squares(const Runner& runner, const std::vector<float>& gradient,
             Word word = Word(AgreedWord::kWords), const Attributes& attributes = {}) {
  std::vector<TestTensor> inputs;
  inputs.emplace_back(DType::i64, Shape{AgreedWord::kWords}, word);
  inputs.emplace_back(DType::f32, Shape{static_cast<std::int64_t>(gradient.size())}, gradient);
  std::vector<TestTensor> fresh;
  run_kernel(runner, norm_squares_operation(), inputs, attributes, fresh);
  return inputs[0].values<std::int64_t>();
}

double value(const Word& word) {
  return wide_value(ConstWideDigits(word.data(), AgreedWord::kDigits));
}

/// Computes the definition: 32 lanes per cell, folded by halves.
Word reference(const std::vector<float>& gradient) {
  Word word(AgreedWord::kWords);
  for (std::size_t begin = 0; begin < gradient.size(); begin += 1024) {
    double lanes[32] = {};
    for (std::size_t i = begin; i < std::min(gradient.size(), begin + 1024); ++i)
      lanes[(i - begin) % 32] +=
          static_cast<double>(gradient[i]) * static_cast<double>(gradient[i]);
    for (std::size_t width = 16; width >= 1; width /= 2)
      for (std::size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
    EXPECT_TRUE(wide_add(WideDigits(word.data(), AgreedWord::kDigits), lanes[0]));
  }
  return word;
}

TEST(NormSquares, AddsCellsInFixedLanesHoweverItRuns) {
  const std::vector<float> gradient = random_floats(200'000, 4, 1e-3F);
  const Word expected = reference(gradient);
  for (const auto& [name, runner] : all_runners())
    EXPECT_EQ(squares(runner, gradient), expected) << name;
}

TEST(NormSquares, TotalDoesNotDependOnShards) {
  const Runner runner = any_runner();
  const std::int64_t cells = 61;
  const std::vector<float> gradient = random_floats(cells * kNormCell, 9);
  const Word whole = squares(runner, gradient);
  for (std::int64_t shards = 1; shards <= 8; ++shards) {
    Word total(AgreedWord::kWords);
    for (std::int64_t shard = 0; shard < shards; ++shard) {
      const auto begin = gradient.begin() + cells * shard / shards * kNormCell;
      const auto end = gradient.begin() + cells * (shard + 1) / shards * kNormCell;
      const Word part = squares(runner, {begin, end});
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += part[i];
    }
    EXPECT_EQ(total, whole) << shards;
  }
}

TEST(NormSquares, PaddingContributesNothing) {
  const Runner runner = any_runner();
  std::vector<float> gradient = random_floats(1500, 2);
  const Word unpadded = squares(runner, gradient);
  gradient.resize(5000);
  EXPECT_EQ(squares(runner, gradient), unpadded);
  EXPECT_EQ(squares(runner, {}), Word(AgreedWord::kWords));
}

TEST(NormSquares, SixteenBitGradientsCountAsTheNumbersTheyHold) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    std::vector<float> gradient = random_floats(70'000, 6);
    std::vector<TestTensor> inputs;
    inputs.emplace_back(DType::i64, Shape{AgreedWord::kWords}, Word(AgreedWord::kWords));
    inputs.push_back(rounded_tensor(dtype, gradient));
    for (const auto& [name, runner] : all_runners()) {
      std::vector<TestTensor> operands = inputs, fresh;
      run_kernel(runner, norm_squares_operation(), operands, {}, fresh);
      EXPECT_EQ(operands[0].values<std::int64_t>(), squares(runner, gradient))
          << name << ' ' << name_of(dtype);
    }
  }
}

TEST(NormSquares, CoversTheWholeRangeOfFp32) {
  const Runner runner = any_runner();
  const float largest = std::numeric_limits<float>::max();
  const float smallest = std::numeric_limits<float>::denorm_min();
  const std::vector<float> gradient(4096, largest);
  EXPECT_EQ(std::sqrt(value(squares(runner, gradient))), 64 * static_cast<double>(largest));
  EXPECT_EQ(value(squares(runner, {smallest})), std::ldexp(1.0, -298));
}

TEST(NormSquares, CountsCellsThatAreNotFinite) {
  const Runner runner = any_runner();
  std::vector<float> gradient(5 * 1024, 1.0F);
  gradient[7] = gradient[8] = std::numeric_limits<float>::quiet_NaN();
  gradient[4 * 1024] = -std::numeric_limits<float>::infinity();
  const Word word = squares(runner, gradient);
  EXPECT_EQ(word[AgreedWord::kNonFinite], 2);
  EXPECT_EQ(value(word), 3 * 1024);
}

TEST(NormSquares, AddsToTheWordOrStartsFromZero) {
  const Runner runner = any_runner();
  Word word(AgreedWord::kWords, 5);
  const Word one = squares(runner, {3});
  const Word added = squares(runner, {3}, word);
  for (std::size_t i = 0; i < word.size(); ++i) EXPECT_EQ(added[i], 5 + one[i]);
  EXPECT_EQ(squares(runner, {3}, word, {{"first", 1}}), one);
}

TEST(NormSquares, RefusesAWordOfAnotherSize) {
  const Types inputs = {TensorType(DType::i64, {70}), TensorType(DType::f32, {4})};
  EXPECT_THROW(norm_squares_operation().infer(inputs, {}), InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels
