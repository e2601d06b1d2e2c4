#include "kernels/ops/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kernels/testing/kernel_test_support.h"

namespace strata::kernels {
namespace {

constexpr std::byte kBefore{0xA5};

/// Expects that elements arrive and that the bytes between rows of the output stay as they were.
void expect_copies(const TensorType& from_type, const TensorType& to_type) {
  TestTensor from(from_type);
  std::mt19937 random(7);
  for (std::byte& byte : from.bytes()) byte = static_cast<std::byte>(random());
  const auto size = static_cast<std::size_t>(size_of(from_type.dtype));
  const auto row_bytes = static_cast<std::size_t>(from_type.shape.cols()) * size;
  std::vector<std::byte> expected(TestTensor(to_type).bytes().size(), kBefore);
  for (std::size_t r = 0; r < static_cast<std::size_t>(from_type.shape.rows()); ++r)
    std::copy_n(from.bytes().data() + r * static_cast<std::size_t>(from_type.row_stride) * size,
                row_bytes,
                expected.data() + r * static_cast<std::size_t>(to_type.row_stride) * size);
  for (const auto& [name, runner] : all_runners()) {
    TestTensor to(to_type);
    std::fill(to.bytes().begin(), to.bytes().end(), kBefore);
    const Tensor input = from.view(), output = to.view();
    runner(copy_operation(), {&input, 1}, {&output, 1}, {});
    ASSERT_TRUE(to.bytes() == expected)
        << from_type.to_string() << " to " << to_type.to_string() << ", " << name;
  }
}

constexpr DType kTypes[] = {DType::u8, DType::bf16, DType::f32, DType::i64};

TEST(Copy, CopiesRangesOfAnyType) {
  for (const DType dtype : kTypes)
    for (const std::int64_t count : {1, 15, 16, 9001, 50'000})
      expect_copies(TensorType(dtype, {count}), TensorType(dtype, {count}));
}

// Ranges of an arena may begin anywhere: neither, one or both at a multiple of 16 bytes.
TEST(Copy, CopiesRangesThatBeginAnywhere) {
  constexpr std::int64_t kCount = 4096;
  const std::vector<float> numbers = random_floats(kCount + 4, 5);
  for (const auto& [name, runner] : all_runners())
    for (const std::int64_t from_offset : {0, 1, 4})
      for (const std::int64_t to_offset : {0, 1, 4}) {
        TestTensor from(DType::f32, {kCount + 4}, numbers);
        TestTensor to(TensorType(DType::f32, {kCount + 4}));
        Tensor input = from.view(), output = to.view();
        for (Tensor* view : {&input, &output}) view->type = TensorType(DType::f32, {kCount});
        input.data += from_offset * size_of(DType::f32);
        output.data += to_offset * size_of(DType::f32);
        runner(copy_operation(), {&input, 1}, {&output, 1}, {});
        std::vector<float> expected(kCount + 4);
        std::copy_n(numbers.begin() + from_offset, kCount, expected.begin() + to_offset);
        EXPECT_EQ(to.values<float>(), expected)
            << from_offset << " to " << to_offset << ", " << name;
      }
}

// Some strides on either side let the kernel move packs, others do not.
TEST(Copy, CopiesRowsThatLieApart) {
  for (const DType dtype : kTypes)
    for (const std::int64_t from_gap : {0, 5, 16})
      for (const std::int64_t to_gap : {0, 7, 32}) {
        const Shape wide{130, 48}, odd{11, 3};
        expect_copies(TensorType(dtype, wide, 48 + from_gap), TensorType(dtype, wide, 48 + to_gap));
        expect_copies(TensorType(dtype, odd, 3 + from_gap), TensorType(dtype, odd, 3 + to_gap));
      }
}

TEST(Copy, HasTheTypeOfItsInputWithoutGaps) {
  const Types inputs{TensorType(DType::i32, {2, 3}, 7)};
  EXPECT_EQ(copy_operation().infer(inputs, {}), Types{TensorType(DType::i32, {2, 3})});
}

}  // namespace
}  // namespace strata::kernels
