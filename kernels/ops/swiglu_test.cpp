#include "kernels/ops/swiglu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/testing/finite_difference.h"
#include "kernels/testing/layer_test_support.h"
#include "kernels/testing/swiglu_reference.h"

namespace strata::kernels {
namespace {

// Rows shorter than a pack, of whole packs and not, in one block of threads and several.
const Shape kShapes[] = {{1, 1}, {3, 5}, {17, 48}, {40, 1031}, {21, 1032}};

TEST(Swiglu, AgreesWithTheReference) {
  for (const Shape& shape : kShapes)
    for (DType dtype : kFloatTypes) {
      const std::int64_t width = shape[1];
      OperationCase test{swiglu_operation(),
                         swiglu_kernel,
                         {TestOperand::random(dtype, {shape[0], 2 * width}, 1, 2)},
                         {},
                         {{}}};
      const auto x = test.inputs[0].values();
      for (std::int64_t n = 0; n < shape[0]; ++n)
        for (std::int64_t c = 0; c < width; ++c) {
          const auto at = static_cast<std::size_t>(2 * n * width + c);
          test.expected[0].push_back(
              reference::swiglu(x[at], x[at + static_cast<std::size_t>(width)]));
        }
      test.tolerance = 3e-7;
      verify(test, shape.to_string() + std::string(name_of(dtype)));
    }
}

TEST(Swiglu, BackwardAgreesWithTheReference) {
  for (const Shape& shape : kShapes)
    for (DType dtype : kFloatTypes) {
      const auto rows = static_cast<std::size_t>(shape[0]),
                 width = static_cast<std::size_t>(shape[1]);
      OperationCase test{swiglu_backward_operation(),
                         swiglu_backward_kernel,
                         {TestOperand::random(dtype, shape, 2),
                          TestOperand::random(dtype, {shape[0], 2 * shape[1]}, 1, 2)},
                         {},
                         {std::vector<double>(2 * rows * width)}};
      const auto dy = test.inputs[0].values(), x = test.inputs[1].values();
      for (std::size_t n = 0; n < rows; ++n)
        for (std::size_t c = 0; c < width; ++c) {
          const std::size_t gate = 2 * n * width + c, up = gate + width;
          const double d = dy[n * width + c];
          test.expected[0][gate] = d * reference::swiglu_gate_gradient(x[gate], x[up]);
          test.expected[0][up] = d * reference::swiglu_up_gradient(x[gate]);
        }
      test.tolerance = 3e-7;
      verify(test, shape.to_string() + std::string(name_of(dtype)));
    }
}

// e^-gate overflows for the first two gates; results must stay finite all the same.
TEST(Swiglu, ExtremeGatesSaturate) {
  TestOperand x(TensorType(DType::f32, {1, 6})), dy(TensorType(DType::f32, {1, 3}));
  const float numbers[] = {-1e30f, -200, 200, 1, 1, 1};
  std::copy(std::begin(numbers), std::end(numbers), x.view().row<float>());
  std::fill_n(dy.view().row<float>(), 3, 1.0f);
  const auto y = run({swiglu_operation(), swiglu_kernel, {x}, {}, {}})[0].values();
  const auto dx =
      run({swiglu_backward_operation(), swiglu_backward_kernel, {dy, x}, {}, {}})[0].values();
  const double gate_gradients[] = {0, 0, 1}, outputs[] = {0, 0, 200};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(y[i], outputs[i]);
    EXPECT_NEAR(dx[i], gate_gradients[i], 1e-5);
    EXPECT_NEAR(dx[3 + i], outputs[i], 1e-5);
  }
}

TEST(Swiglu, ReferenceGradientAgreesWithFiniteDifferences) {
  for (double gate : {-30.0, -2.0, 0.0, 0.7, 12.0})
    reference::expect_gradient(
        [](const auto& x) { return reference::swiglu(x[0], x[1]); }, {gate, 1.5},
        {reference::swiglu_gate_gradient(gate, 1.5), reference::swiglu_up_gradient(gate)});
}

TEST(Swiglu, RefusesAnOddWidth) {
  const Types types{TensorType(DType::f32, {2, 7})};
  EXPECT_THROW(swiglu_operation().infer(types, {}), InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels
