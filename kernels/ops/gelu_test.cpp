#include "kernels/ops/gelu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/layer_kernels.h"
#include "kernels/testing/finite_difference.h"
#include "kernels/testing/gelu_reference.h"
#include "kernels/testing/layer_test_support.h"

namespace strata::kernels {
namespace {

// Rows shorter than a vector, with a rest, and longer than a part; one task and several.
const Shape kShapes[] = {{1, 1}, {3, 5}, {17, 48}, {40, 1031}, {2, 3000}};

TEST(Gelu, AgreesWithTheReference) {
  for (const bool tanh : {false, true})
    for (const Shape& shape : kShapes)
      for (DType dtype : kFloatTypes) {
        OperationCase test{gelu_operation(),
                           gelu_kernel,
                           {TestOperand::random(dtype, shape, 1, 3)},
                           {{"tanh", tanh ? 1.0 : 0.0}},
                           {{}}};
        for (double x : test.inputs[0].values())
          test.expected[0].push_back(reference::gelu(x, tanh));
        test.tolerance = 5e-7;
        verify(test, shape.to_string() + std::string(name_of(dtype)));
      }
}

TEST(Gelu, BackwardAgreesWithTheReference) {
  for (const bool tanh : {false, true})
    for (const Shape& shape : kShapes)
      for (DType dtype : kFloatTypes) {
        OperationCase test{
            gelu_backward_operation(),
            gelu_backward_kernel,
            {TestOperand::random(dtype, shape, 2), TestOperand::random(dtype, shape, 1, 3)},
            {{"tanh", tanh ? 1.0 : 0.0}},
            {{}}};
        const auto dy = test.inputs[0].values(), x = test.inputs[1].values();
        for (std::size_t i = 0; i < x.size(); ++i)
          test.expected[0].push_back(dy[i] * reference::gelu_gradient(x[i], tanh));
        test.tolerance = 5e-7;
        verify(test, shape.to_string() + std::string(name_of(dtype)));
      }
}

TEST(Gelu, ReferenceGradientAgreesWithFiniteDifferences) {
  for (const bool tanh : {false, true})
    for (double x : {-4.0, -1.3, -0.01, 0.0, 0.5, 2.0, 5.0})
      reference::expect_gradient([&](const auto& at) { return reference::gelu(at[0], tanh); }, {x},
                                 {reference::gelu_gradient(x, tanh)});
}

/// Returns the output of a kernel for one fp32 row, with tanh or erf.
std::vector<double> through(const Operation& operation, Kernel kernel, bool tanh,
                            const std::vector<float>& x) {
  std::vector<TestOperand> inputs;
  for (std::size_t i = 0; i < (kernel == gelu_kernel ? 1u : 2u); ++i) {
    inputs.emplace_back(TensorType(DType::f32, {1, static_cast<std::int64_t>(x.size())}));
    for (std::size_t c = 0; c < x.size(); ++c)
      inputs[i].view().row<float>()[c] = kernel == gelu_kernel || i == 1 ? x[c] : 1.0f;
  }
  return run({operation, kernel, inputs, {{"tanh", tanh ? 1.0 : 0.0}}, {}})[0].values();
}

// A gradient that is not finite must reach the check of the step.
TEST(Gelu, ExtremeInputsSaturateAndNanStays) {
  const std::vector<float> x{-1e30f, -200, 200, 1e30f, std::numeric_limits<float>::quiet_NaN()};
  for (const bool tanh : {false, true}) {
    const auto y = through(gelu_operation(), gelu_kernel, tanh, x);
    EXPECT_EQ(y[0], 0);
    EXPECT_EQ(y[1], 0);
    EXPECT_EQ(y[2], 200);
    EXPECT_EQ(y[3], static_cast<double>(1e30f));
    EXPECT_TRUE(std::isnan(y[4]));
    const auto dx = through(gelu_backward_operation(), gelu_backward_kernel, tanh, x);
    EXPECT_NEAR(dx[0], 0, 1e-30);
    EXPECT_NEAR(dx[1], 0, 1e-30);
    EXPECT_EQ(dx[2], 1);
    EXPECT_EQ(dx[3], 1);
    EXPECT_TRUE(std::isnan(dx[4]));
  }
}

// The worst error over a dense range, relative to max(|gelu(x)|, 2^-10): a few units in the last
// place.
TEST(Gelu, ErrorIsAFewUnitsInTheLastPlace) {
  std::vector<float> x;
  for (float at = -10; at < 10; at += 1e-3f) x.push_back(at);
  for (const bool tanh : {false, true}) {
    const auto y = through(gelu_operation(), gelu_kernel, tanh, x);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = reference::gelu(x[i], tanh);
      worst = std::max(worst, std::fabs(y[i] - exact) / std::max(std::fabs(exact), 0x1p-10));
    }
    EXPECT_LE(worst, tanh ? 1.5e-6 : 2.5e-4) << tanh;  // erf: Phi loses digits left of -2
  }
}

}  // namespace
}  // namespace strata::kernels
