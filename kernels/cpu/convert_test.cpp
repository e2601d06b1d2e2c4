#include "kernels/cpu/convert.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/math/float16.h"
#include "kernels/testing/float16_test_support.h"
#include "kernels/testing/kernel_test_support.h"
#include "kernels/testing/target_scope.h"

namespace strata::kernels {
namespace {

/// Returns what convert_range makes of `from`, as T.
template <typename T, typename From>
std::vector<T> converted(DType from_type, const std::vector<From>& from, DType to_type,
                         Rounding rounding = Rounding::nearest_even) {
  std::vector<T> to(from.size());
  convert_range(from_type, reinterpret_cast<const std::byte*>(from.data()), to_type,
                reinterpret_cast<std::byte*>(to.data()), static_cast<std::int64_t>(from.size()),
                rounding);
  return to;
}

TEST(ConvertRange, VectorsGiveTheBitsOfSingleNumbersOnEveryTarget) {
  const Bits16 patterns = all_patterns();
  const std::vector<float> for_bf16 = interesting(bf16_to_f32);
  const std::vector<float> for_f16 = interesting(f16_to_f32);
  with_each_target([&](const char* target) {
    SCOPED_TRACE(target);
    EXPECT_EQ(bits_of(converted<float>(DType::bf16, patterns, DType::f32)),
              bits_of(mapped<float, std::uint16_t>(patterns, bf16_to_f32)));
    EXPECT_EQ(bits_of(converted<float>(DType::f16, patterns, DType::f32)),
              bits_of(mapped<float, std::uint16_t>(patterns, f16_to_f32)));
    EXPECT_EQ(converted<std::uint16_t>(DType::f32, for_bf16, DType::bf16),
              mapped(for_bf16, f32_to_bf16));
    EXPECT_EQ(converted<std::uint16_t>(DType::f32, for_bf16, DType::bf16, Rounding::master),
              mapped(for_bf16, master_to_bf16));
    EXPECT_EQ(converted<std::uint16_t>(DType::f32, for_f16, DType::f16),
              mapped(for_f16, f32_to_f16));
    EXPECT_EQ(converted<std::uint16_t>(DType::bf16, patterns, DType::f16),
              mapped(mapped<float, std::uint16_t>(patterns, bf16_to_f32), f32_to_f16));
    EXPECT_EQ(converted<std::uint16_t>(DType::f16, patterns, DType::bf16),
              mapped(mapped<float, std::uint16_t>(patterns, f16_to_f32), f32_to_bf16));
  });
}

TEST(ConvertRange, EveryCountIsWrittenAndNothingBeyond) {
  const std::vector<float> from = random_floats(70, 1);
  for (std::int64_t count = 0; count <= 66; ++count) {
    Bits16 to(70, 0xABCD);
    convert_range(DType::f32, reinterpret_cast<const std::byte*>(from.data()), DType::bf16,
                  reinterpret_cast<std::byte*>(to.data()), count);
    for (std::size_t i = 0; i < to.size(); ++i)
      ASSERT_EQ(to[i], static_cast<std::int64_t>(i) < count ? f32_to_bf16(from[i]) : 0xABCD);
  }
}

}  // namespace
}  // namespace strata::kernels
