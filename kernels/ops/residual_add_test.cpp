#include "kernels/ops/residual_add.h"

#include <gtest/gtest.h>

#include "kernels/cpu/layer_kernels.h"
#include "kernels/testing/dropout_reference.h"
#include "kernels/testing/layer_test_support.h"

namespace strata::kernels {
namespace {

TEST(ResidualAdd, AgreesWithTheReference) {
  const std::vector<std::int64_t> rng{42, 3, 900, 901};
  for (const std::int64_t columns : {1, 37, 1030, 2064})
    for (const double p : {0.0, 0.3})
      for (DType dtype : kFloatTypes) {
        const Shape shape{10, columns};
        OperationCase test{
            residual_add_operation(),
            residual_add_kernel,
            {TestOperand::random(dtype, shape, 1), TestOperand::random(dtype, shape, 2)},
            {{"p", p}, {"key", 2}, {"sequence", 5}},
            {{}}};
        if (p > 0) test.inputs.push_back(TestOperand::integers(rng));
        const auto x = test.inputs[0].values(), delta = test.inputs[1].values();
        const auto factors =
            reference::dropout_factors(rng, 10, static_cast<std::size_t>(columns), 5, 2, p);
        for (std::size_t i = 0; i < x.size(); ++i)
          test.expected[0].push_back(x[i] + (p > 0 ? factors[i] : 1) * delta[i]);
        verify(test, std::to_string(columns) + " columns " + std::string(name_of(dtype)));
      }
}

TEST(ResidualAdd, GradientOfDeltaIsDroppedAlike) {
  const TensorType x(DType::f32, {10, 3});
  const Types inputs{x, x, TensorType(DType::i64, {4})}, outputs{x};
  const GradientRule plain = residual_add_operation().gradient(inputs, outputs, {});
  EXPECT_TRUE(plain.steps.empty());
  EXPECT_EQ(plain.input_gradients.size(), 2u);
  const GradientRule drops = residual_add_operation().gradient(inputs, outputs, {{"p", 0.1}});
  ASSERT_EQ(drops.steps.size(), 1u);
  EXPECT_EQ(drops.steps[0].operation, "dropout");
  EXPECT_EQ(drops.input_gradients[1].second.source, Source::result);
}

}  // namespace
}  // namespace strata::kernels
