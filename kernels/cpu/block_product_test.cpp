#include "kernels/cpu/block_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "kernels/cpu/target_scope.h"
#include "kernels/product_test_support.h"

namespace strata::kernels {
namespace {

using testing::Storage;

/// Whether an instruction set fuses multiply-add, as block_product.h promises where it can.
bool fuses(std::string_view target) { return target.starts_with("AVX"); }

/// What block_product.h says that an element is.
float promised(const TileShape& s, const std::vector<double>& a, const std::vector<double>& b,
               std::int64_t row, std::int64_t column, float before) {
  const auto at = [](const std::vector<double>& values, std::int64_t i) {
    return static_cast<float>(values[static_cast<std::size_t>(i)]);
  };
  float result = before;
  for (std::int64_t first = 0; first < s.k; first += kProductDepth) {
    float sum = 0;
    for (std::int64_t k = first; k < std::min(s.k, first + kProductDepth); ++k)
      sum = std::fma(at(a, s.a_transposed ? k * s.m + row : row * s.k + k),
                     at(b, s.b_transposed ? column * s.k + k : k * s.n + column), sum);
    result = first > 0 || s.accumulate ? result + sum : sum;
  }
  return result;
}

struct Operands {
  Storage a, b, c;
  TileShape shape;

  Operands(std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb, DType type)
      : a(TensorType(type, ta ? Shape{k, m} : Shape{m, k}, (ta ? m : k) + 3), 1),
        b(TensorType(type, tb ? Shape{n, k} : Shape{k, n}, (tb ? k : n) + 5), 2),
        c(TensorType(DType::f32, {m, n}, n + 7), 3),
        shape{.m = m,
              .n = n,
              .k = k,
              .a_dtype = type,
              .b_dtype = type,
              .a_transposed = ta,
              .b_transposed = tb,
              .a_stride = a.type().row_stride,
              .b_stride = b.type().row_stride,
              .c_stride = c.type().row_stride} {}

  void multiply() { multiply(shape, 0, 0); }
  /// The part of `part`'s size from this row and column on.
  void multiply(const TileShape& part, std::int64_t row, std::int64_t column) {
    const std::int64_t width = size_of(shape.a_dtype);
    Storage scratch(TensorType(DType::u8, {packed_bytes(part)}));
    multiply_blocks(
        part, a.tensor().data + (shape.a_transposed ? row : row * shape.a_stride) * width,
        b.tensor().data + (shape.b_transposed ? column * shape.b_stride : column) * width,
        c.tensor().row<float>() + row * shape.c_stride + column,
        {scratch.tensor().data, static_cast<std::size_t>(packed_bytes(part))});
  }
};

void expect_promised(Operands& x, std::string_view target) {
  const std::vector<double> a = x.a.values(), b = x.b.values(), before = x.c.values();
  x.multiply();
  const std::vector<double> after = x.c.values();
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
    for (const Size size : {Size{1, 1, 1}, {5, 3, 7}, {13, 33, 258}, {250, 70, 530}})
      for (const DType type : {DType::f32, DType::bf16, DType::f16})
        for (const bool ta : {false, true})
          for (const bool tb : {false, true})
            for (const bool accumulate : {false, true}) {
              Operands x(size.m, size.n, size.k, ta, tb, type);
              x.shape.accumulate = accumulate;
              expect_promised(x, target);
            }
  });
}

TEST(BlockProduct, BitsDoNotDependOnTheTile) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      Operands whole(90, 100, 300, ta, tb, DType::f32), parts(90, 100, 300, ta, tb, DType::f32);
      whole.multiply();
      for (std::int64_t row = 0; row < 90; row += 37)
        for (std::int64_t column = 0; column < 100; column += 23) {
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
