#include "kernels/ops/fill_zero.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/testing/kernel_test_support.h"

namespace strata::kernels {
namespace {

constexpr std::byte kBefore{0xFF};

/// Elements are zero, what lies between rows is as before.
void expect_fills(const TensorType& type) {
  const std::int64_t size = size_of(type.dtype);
  for (const auto& [name, runner] : all_runners()) {
    TestTensor tensor(type);
    std::fill(tensor.bytes().begin(), tensor.bytes().end(), kBefore);
    const Tensor view = tensor.view();
    runner(fill_zero_operation(), {}, {&view, 1}, {});
    for (std::size_t i = 0; i < tensor.bytes().size(); ++i) {
      const std::int64_t col = static_cast<std::int64_t>(i) / size % type.row_stride;
      const bool gap = type.shape.ndim() > 1 && col >= type.shape.cols();
      ASSERT_EQ(tensor.bytes()[i], gap ? kBefore : std::byte{0})
          << type.to_string() << ", byte " << i << ", " << name;
    }
  }
}

TEST(FillZero, WritesEveryElementOfALargeRange) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64, DType::u8})
    for (const std::int64_t count : {1, 15, 16, 100'000, 100'001})
      expect_fills(TensorType(dtype, {count}));
}

// A stride that lets packs be moved, and others.
TEST(FillZero, WritesRowsAndLeavesGapsAlone) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::u8}) {
    expect_fills(TensorType(dtype, {2, 3}, 5));
    expect_fills(TensorType(dtype, {300, 48}, 64));
    expect_fills(TensorType(dtype, {300, 48}, 53));
  }
}

TEST(FillZero, IsOfTheShapeOfItsAttributes) {
  const Attributes attributes{
      {"dtype", static_cast<double>(DType::bf16)}, {"rows", 2}, {"cols", 3}};
  EXPECT_EQ(fill_zero_operation().infer({}, attributes), Types{TensorType(DType::bf16, {2, 3})});
}

}  // namespace
}  // namespace strata::kernels
