// Tests accumulate on ranges as steps have them, in every way in which kernels run.
#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"
#include "kernels/ops/accumulate.h"
#include "kernels/testing/kernel_test_support.h"

namespace strata::kernels {
namespace {

TEST(Accumulate, AddsInFp32AndRoundsToTheTypeOfTheSumHoweverItRuns) {
  constexpr std::int64_t kCount = 100'003;
  for (const DType sum_type : {DType::f32, DType::bf16, DType::f16})
    for (const DType x_type : {DType::f32, DType::bf16, DType::f16}) {
      std::vector<float> sum = random_floats(kCount, 1), x = random_floats(kCount, 2);
      const TestTensor stored_sum = rounded_tensor(sum_type, sum);
      const TestTensor stored_x = rounded_tensor(x_type, x);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += x[i];
      const std::vector<std::byte> expected = rounded_tensor(sum_type, sum).bytes();
      for (const auto& [target, runner] : all_runners()) {
        std::vector<TestTensor> inputs = {stored_sum, stored_x};
        std::vector<TestTensor> fresh;
        run_kernel(runner, accumulate_operation(), inputs, {}, fresh);
        EXPECT_TRUE(inputs[0].bytes() == expected)
            << target << ' ' << name_of(sum_type) << " + " << name_of(x_type);
      }
    }
}

TEST(Accumulate, RefusesOtherShapes) {
  EXPECT_THROW(accumulate_operation().infer(
                   Types{TensorType(DType::f32, {4}), TensorType(DType::f32, {5})}, {}),
               InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels
