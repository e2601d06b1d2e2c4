#include "kernels/cpu/block_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/testing/product_test_support.h"
#include "kernels/testing/target_scope.h"

namespace strata::kernels {
namespace {

using testing::Storage;

/// True if this instruction set fuses multiply-add: the promise about bits holds for those that do.
bool fuses(std::string_view target) { return target.starts_with("AVX"); }

/// Computes an element of C the way block_product.h promises.
float promised(const TileShape& s, const std::vector<double>& a, const std::vector<double>& b,
               std::int64_t row, std::int64_t column, float before) {
  const auto at = [](const std::vector<double>& values, std::int64_t i) {
    return static_cast<float>(values[static_cast<std::size_t>(i)]);
  };
  float result = before;
  constexpr std::int64_t kDepth = 256;  // another one would change the bits of every run
  for (std::int64_t first = 0; first < s.k; first += kDepth) {
    float sum = 0;
    for (std::int64_t k = first; k < std::min(s.k, first + kDepth); ++k)
      sum = std::fma(at(a, s.a_transposed ? k * s.m + row : row * s.k + k),
                     at(b, s.b_transposed ? column * s.k + k : k * s.n + column), sum);
    result = first > 0 || s.accumulate ? result + sum : sum;
  }
  return result;
}

struct Operands {
  Storage a, b, c;
  TileShape shape;

  Operands(std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb, DType type,
           DType b_type)
      : a(TensorType(type, ta ? Shape{k, m} : Shape{m, k}, (ta ? m : k) + 3), 1),
        b(TensorType(b_type, tb ? Shape{n, k} : Shape{k, n}, (tb ? k : n) + 5), 2),
        c(TensorType(DType::f32, {m, n}, n + 7), 3),
        shape{.m = m,
              .n = n,
              .k = k,
              .a_dtype = type,
              .b_dtype = b_type,
              .a_transposed = ta,
              .b_transposed = tb,
              .a_stride = a.type().row_stride,
              .b_stride = b.type().row_stride,
              .c_stride = c.type().row_stride} {}

  void multiply() { multiply(shape, 0, 0); }
  /// Multiplies a part from `row` and `column` on. Expects that bytes past the scratch stay.
  void multiply(const TileShape& part, std::int64_t row, std::int64_t column) {
    const auto bytes = static_cast<std::size_t>(packed_bytes(part));
    Storage scratch(TensorType(DType::u8, {packed_bytes(part) + kGuard}));
    std::memset(scratch.tensor().data + bytes, 0x5a, kGuard);
    multiply_blocks(part,
                    a.tensor().data +
                        (shape.a_transposed ? row : row * shape.a_stride) * size_of(shape.a_dtype),
                    b.tensor().data + (shape.b_transposed ? column * shape.b_stride : column) *
                                          size_of(shape.b_dtype),
                    c.tensor().row<float>() + row * shape.c_stride + column,
                    {scratch.tensor().data, bytes});
    for (std::size_t i = 0; i < static_cast<std::size_t>(kGuard); ++i)
      ASSERT_EQ(std::to_integer<int>(scratch.tensor().data[bytes + i]), 0x5a) << "after scratch";
  }

  /// Returns the bits between the rows of C.
  std::vector<std::uint32_t> gaps() {
    std::vector<std::uint32_t> found;
    for (std::int64_t row = 0; row + 1 < shape.m; ++row)
      for (std::int64_t at = shape.n; at < shape.c_stride; ++at)
        found.push_back(
            std::bit_cast<std::uint32_t>(c.tensor().row<float>()[row * shape.c_stride + at]));
    return found;
  }

 private:
  static constexpr std::int64_t kGuard = 4096;
};

void expect_promised(Operands& x, std::string_view target) {
  const std::vector<double> a = x.a.values(), b = x.b.values(), before = x.c.values();
  const std::vector<std::uint32_t> gaps = x.gaps();
  x.multiply();
  const std::vector<double> after = x.c.values();
  EXPECT_EQ(x.gaps(), gaps);
  for (std::int64_t i = 0; i < x.shape.m; ++i)
    for (std::int64_t j = 0; j < x.shape.n; ++j) {
      const auto at = static_cast<std::size_t>(i * x.shape.n + j);
      const float right = promised(x.shape, a, b, i, j, static_cast<float>(before[at]));
      if (fuses(target))
        ASSERT_EQ(static_cast<float>(after[at]), right) << i << ", " << j;
      else
        ASSERT_NEAR(after[at], right, 1e-5 * std::sqrt(static_cast<double>(x.shape.k)));
    }
}

TEST(BlockProduct, IsTheSumOfChainsThatItPromisesOnEveryTarget) {
  struct Size {
    std::int64_t m, n, k;
  };
  with_each_target([&](const char* target) {
    SCOPED_TRACE(target);
    for (const Size size :
         {Size{1, 1, 1}, {5, 3, 7}, {3, 300, 20}, {200, 5, 20}, {13, 33, 258}, {250, 70, 530}})
      for (const auto& [a, b] : {std::pair{DType::f32, DType::f32},
                                 {DType::bf16, DType::bf16},
                                 {DType::f16, DType::f32},
                                 {DType::f32, DType::bf16}})
        for (const bool ta : {false, true})
          for (const bool tb : {false, true})
            for (const bool accumulate : {false, true}) {
              Operands x(size.m, size.n, size.k, ta, tb, a, b);
              x.shape.accumulate = accumulate;
              expect_promised(x, target);
            }
  });
}

TEST(BlockProduct, BitsDoNotDependOnTheTile) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      Operands whole(90, 100, 300, ta, tb, DType::f32, DType::f32);
      Operands parts(90, 100, 300, ta, tb, DType::f32, DType::f32);
      whole.multiply();
      // Parts go from right to left, so that what one writes beside itself stays wrong.
      for (std::int64_t row = 0; row < 90; row += 37)
        for (std::int64_t column = 92; column >= 0; column -= 23) {
          TileShape part = parts.shape;
          part.m = std::min<std::int64_t>(37, 90 - row);
          part.n = std::min<std::int64_t>(23, 100 - column);
          parts.multiply(part, row, column);
        }
      EXPECT_EQ(whole.c.values(), parts.c.values());
    }
}

}  // namespace
}  // namespace strata::kernels
