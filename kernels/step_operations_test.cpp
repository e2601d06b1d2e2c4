// Operations on whole gradients around a step: accumulate, fill_zero.
#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"
#include "kernels/accumulate.h"
#include "kernels/cpu/convert.h"
#include "kernels/fill_zero.h"
#include "kernels/kernel_test_support.h"

namespace strata::kernels {
namespace {

TEST(Accumulate, AddsAnyFloatTypeInFp32HoweverItRuns) {
  constexpr std::int64_t kCount = 100'003;
  const std::vector<float> sum = random_floats(kCount, 1);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    std::vector<float> x = random_floats(kCount, 2);
    TestTensor stored(TensorType(dtype, {kCount}));
    convert_range(DType::f32, reinterpret_cast<const std::byte*>(x.data()), dtype,
                  stored.bytes().data(), kCount);
    convert_range(dtype, stored.bytes().data(), DType::f32, reinterpret_cast<std::byte*>(x.data()),
                  kCount);
    for (const auto& [name, runner] : all_runners()) {
      std::vector<TestTensor> inputs;
      inputs.emplace_back(DType::f32, Shape{kCount}, sum);
      inputs.push_back(stored);
      std::vector<TestTensor> fresh;
      run_kernel(runner, accumulate_operation(), inputs, {}, fresh);
      const auto result = inputs[0].values<float>();
      for (std::size_t i = 0; i < result.size(); ++i)
        ASSERT_EQ(result[i], sum[i] + x[i]) << name << ' ' << name_of(dtype);
    }
  }
}

TEST(Accumulate, RefusesOtherShapes) {
  EXPECT_THROW(accumulate_operation().infer(
                   Types{TensorType(DType::f32, {4}), TensorType(DType::f32, {5})}, {}),
               InvalidArgument);
}

TEST(FillZero, WritesRowsAndLeavesGapsAlone) {
  TestTensor tensor(TensorType(DType::bf16, {2, 3}, 5));
  std::fill(tensor.bytes().begin(), tensor.bytes().end(), std::byte{0xFF});
  const Tensor view = tensor.view();
  any_runner()(fill_zero_operation(), {}, {&view, 1}, {});
  EXPECT_EQ(tensor.values<std::uint16_t>(),
            (std::vector<std::uint16_t>{0, 0, 0, 0xFFFF, 0xFFFF, 0, 0, 0}));
  const Attributes attributes{
      {"dtype", static_cast<double>(DType::bf16)}, {"rows", 2}, {"cols", 3}};
  EXPECT_EQ(fill_zero_operation().infer({}, attributes), Types{TensorType(DType::bf16, {2, 3})});
}

TEST(FillZero, WritesEveryElementOfALargeRange) {
  TestTensor tensor(TensorType(DType::f32, {100'001}));
  std::fill(tensor.bytes().begin(), tensor.bytes().end(), std::byte{0xFF});
  const Tensor view = tensor.view();
  any_runner()(fill_zero_operation(), {}, {&view, 1}, {});
  EXPECT_EQ(tensor.values<float>(), std::vector<float>(100'001));
}

}  // namespace
}  // namespace strata::kernels
