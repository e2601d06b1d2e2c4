#include "train/engine/value_check.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace strata::train {
namespace {

template <typename T>
bool finite(DType dtype, const std::vector<T>& values) {
  return are_finite(dtype, std::as_bytes(std::span(values)));
}

TEST(ValueCheck, FindsOneValueWhereverItStands) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::size_t size : {1, 7, 1023, 1024, 1025, 5000}) {
    std::vector<float> values(size, std::numeric_limits<float>::max());
    EXPECT_TRUE(finite(DType::f32, values)) << size;
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1})
      for (const float bad : {kNaN, kInfinity, -kInfinity, -kNaN}) {
        std::vector<float> spoilt = values;
        spoilt[at] = bad;
        EXPECT_FALSE(finite(DType::f32, spoilt)) << size << " " << at << " " << bad;
      }
  }
}

TEST(ValueCheck, KnowsEveryType) {
  EXPECT_TRUE(finite<std::uint16_t>(DType::bf16, {0x7f7f, 0xff7f, 0x0001}));
  EXPECT_FALSE(finite<std::uint16_t>(DType::bf16, {0, 0x7f80}));
  EXPECT_FALSE(finite<std::uint16_t>(DType::bf16, {0xffc0}));
  EXPECT_TRUE(finite<std::uint16_t>(DType::f16, {0x7bff, 0xfbff, 0x3c00}));
  EXPECT_FALSE(finite<std::uint16_t>(DType::f16, {0x7c00}));
  EXPECT_FALSE(finite<double>(DType::f64, {1, std::numeric_limits<double>::infinity()}));
  EXPECT_TRUE(finite<double>(DType::f64, {std::numeric_limits<double>::max()}));
  // Quantized moments and the lower halves of packed masters may have any bits.
  EXPECT_TRUE(finite<std::uint8_t>(DType::u8, {0xff, 0x7f}));
  EXPECT_TRUE(finite<std::uint16_t>(DType::i16, {0x7f80, 0xffff}));
  EXPECT_TRUE(finite<float>(DType::f32, {}));
}

TEST(ValueCheck, RemembersTheFirstTensor) {
  const std::vector<float> good = {1, 2}, bad = {1, std::numeric_limits<float>::quiet_NaN()};
  ValueCheck check;
  check.look("a", DType::f32, std::as_bytes(std::span(good)));
  EXPECT_EQ(check.not_finite(), "");
  check.look("b", DType::f32, std::as_bytes(std::span(bad)));
  check.look("c", DType::f32, std::as_bytes(std::span(bad)));
  EXPECT_EQ(check.not_finite(), "b");
}

}  // namespace
}  // namespace strata::train
