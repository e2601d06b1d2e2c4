#include "kernels/ops/fill_zero.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/testing/kernel_test_support.h"

namespace strata::kernels {
namespace {

constexpr std::byte kBefore{0xFF};

/// Expects that parts of these sizes, `apart` elements from one another, become zero and that what
/// lies between them stays.
void expect_fills(DType dtype, const std::vector<std::int64_t>& parts, std::int64_t apart) {
  const std::int64_t size = size_of(dtype);
  std::int64_t elements = 0;
  for (const std::int64_t part : parts) elements += part + apart;
  for (const auto& [name, runner] : all_runners()) {
    TestTensor whole(TensorType(dtype, {elements}));
    std::fill(whole.bytes().begin(), whole.bytes().end(), kBefore);
    std::vector<std::byte> expected = whole.bytes();
    std::vector<Tensor> views;
    std::int64_t begin = 0;
    for (const std::int64_t part : parts) {
      views.push_back(whole.view());
      views.back().data += begin * size;
      views.back().type = TensorType(dtype, {part});
      std::fill_n(expected.begin() + begin * size, part * size, std::byte{0});
      begin += part + apart;
    }
    runner(fill_zero_operation(), {}, views, {});
    EXPECT_TRUE(whole.bytes() == expected)
        << name_of(dtype) << ", " << parts.size() << " parts, " << apart << " apart, " << name;
  }
}

TEST(FillZero, WritesEveryElementOfALargeRange) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64, DType::u8})
    for (const std::int64_t count : {1, 15, 16, 100'000, 100'001}) expect_fills(dtype, {count}, 0);
}

// One distance lets the kernel store packs. 40 parts are more than one launch takes.
TEST(FillZero, WritesPartsAndLeavesAloneWhatLiesBetweenThem) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::u8})
    for (const std::int64_t apart : {16, 53}) {
      expect_fills(dtype, {3, 1, 5}, apart);
      expect_fills(dtype, {64, 832, 16, 4800}, apart);
      expect_fills(dtype, std::vector<std::int64_t>(40, 48), apart);
    }
}

TEST(FillZero, IsOfTheSizesOfItsAttributes) {
  const Attributes attributes{
      {"dtype", static_cast<double>(DType::bf16)}, {"rows", 2}, {"rows.1", 3}, {"rows.2", 1}};
  EXPECT_EQ(fill_zero_operation().infer({}, attributes),
            (Types{TensorType(DType::bf16, {2}), TensorType(DType::bf16, {3}),
                   TensorType(DType::bf16, {1})}));
}

}  // namespace
}  // namespace strata::kernels
