#include "kernels/ops/accumulate.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/cpu/step_kernels.h"
#include "kernels/math/float16.h"
#include "kernels/testing/layer_test_support.h"

namespace strata::kernels {
namespace {

// Ranges have a rest after the last pack or whole packs; rows are whole packs or not.
TEST(Accumulate, AddsAnyFloatTypeInFp32) {
  for (const Shape& shape : {Shape{1}, Shape{100'003}, Shape{100'000}, Shape{37, 48}, Shape{5, 7}})
    for (const DType dtype : kFloatTypes) {
      OperationCase test{
          accumulate_operation(),
          accumulate_kernel,
          {TestOperand::random(DType::f32, shape, 1), TestOperand::random(dtype, shape, 2)},
          {},
          {{}}};
      const auto sum = test.inputs[0].values(), x = test.inputs[1].values();
      for (std::size_t i = 0; i < sum.size(); ++i)
        test.expected[0].push_back(static_cast<float>(sum[i]) + static_cast<float>(x[i]));
      test.tolerance = 0;
      verify(test, shape.to_string() + std::string(name_of(dtype)));
    }
}

TEST(Accumulate, RoundsA16BitSumOnce) {
  for (const DType sum_type : {DType::bf16, DType::f16})
    for (const DType dtype : {sum_type, DType::f32})
      for (const Shape& shape : {Shape{100'003}, Shape{37, 48}, Shape{5, 7}}) {
        OperationCase test{
            accumulate_operation(),
            accumulate_kernel,
            {TestOperand::random(sum_type, shape, 1), TestOperand::random(dtype, shape, 2)},
            {},
            {{}}};
        const auto sum = test.inputs[0].values(), x = test.inputs[1].values();
        for (std::size_t i = 0; i < sum.size(); ++i) {
          const float exact = static_cast<float>(sum[i]) + static_cast<float>(x[i]);
          test.expected[0].push_back(sum_type == DType::bf16 ? bf16_to_f32(f32_to_bf16(exact))
                                                             : f16_to_f32(f32_to_f16(exact)));
        }
        test.tolerance = 0;
        verify(test,
               shape.to_string() + std::string(name_of(sum_type)) + std::string(name_of(dtype)));
      }
}

TEST(Accumulate, ScalesTheSumInFp32) {
  constexpr float kScale = 0.0625f;
  for (const Shape& shape : {Shape{100'003}, Shape{5, 7}}) {
    OperationCase test{
        accumulate_operation(),
        accumulate_kernel,
        {TestOperand::random(DType::f32, shape, 1), TestOperand::random(DType::f32, shape, 2)},
        {{"scale", kScale}},
        {{}}};
    const auto sum = test.inputs[0].values(), x = test.inputs[1].values();
    for (std::size_t i = 0; i < sum.size(); ++i)
      test.expected[0].push_back(kScale * (static_cast<float>(sum[i]) + static_cast<float>(x[i])));
    test.tolerance = 0;
    verify(test, shape.to_string());
  }
}

TEST(Accumulate, RefusesOtherShapes) {
  EXPECT_THROW(accumulate_operation().infer(
                   Types{TensorType(DType::f32, {4}), TensorType(DType::f32, {5})}, {}),
               InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels
