#include "kernels/ops/norm.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/ops/residual_add.h"
#include "kernels/testing/finite_difference.h"
#include "kernels/testing/layer_test_support.h"
#include "kernels/testing/norm_reference.h"

namespace strata::kernels {
namespace {

struct NormCase {
  Shape shape;
  bool rms, bias;
  DType x, weight;
};

std::vector<NormCase> norm_cases() {
  std::vector<NormCase> cases;
  for (const Shape& shape : {Shape{1, 1}, Shape{5, 3}, Shape{37, 48}, Shape{130, 771},
                             Shape{3, 4099}, Shape{9, 3, 20}, Shape{70, 4, 128}, Shape{18, 768},
                             Shape{3, 1600}, Shape{2, 5120}, Shape{2, 8192}, Shape{17, 8200}})
    for (const bool rms : {false, true}) {
      cases.push_back({shape, rms, !rms, DType::f32, DType::f32});
      if (shape.cols() > 8000) continue;
      cases.push_back({shape, rms, false, DType::bf16, DType::bf16});
      cases.push_back({shape, rms, !rms, DType::f16, DType::f32});
    }
  return cases;
}

std::string label_of(const NormCase& c) {
  return c.shape.to_string() + std::string(name_of(c.x)) + (c.rms ? " rms" : "");
}

std::int64_t columns_of(const NormCase& c) { return c.shape[c.shape.ndim() - 1]; }

OperationCase forward_case(const NormCase& c) {
  OperationCase test{
      norm_operation(),
      norm_kernel,
      {TestOperand::random(c.x, c.shape, 1, 2), TestOperand::random(c.weight, {columns_of(c)}, 2)},
      {{"eps", 1e-5}, {"rms", c.rms ? 1.0 : 0.0}},
      {}};
  if (c.bias) test.inputs.push_back(TestOperand::random(c.weight, {columns_of(c)}, 3));
  const reference::Norm expected =
      reference::norm(test.inputs[0].values(), test.inputs[1].values(),
                      c.bias ? test.inputs[2].values() : std::vector<double>{}, 1e-5, c.rms);
  test.expected = {expected.y, expected.stats};
  return test;
}

TEST(Norm, AgreesWithTheReference) {
  for (const NormCase& c : norm_cases()) verify(forward_case(c), label_of(c));
}

TEST(Norm, BackwardAgreesWithTheReference) {
  for (const NormCase& c : norm_cases())
    for (const bool dsum : {false, true}) {
      if (columns_of(c) == 1) continue;                     // all of dx cancels
      if (columns_of(c) > 1000 && dsum == c.rms) continue;  // half of the combinations will do
      const OperationCase forward = forward_case(c);
      OperationCase test{norm_backward_operation(),
                         norm_backward_kernel,
                         {TestOperand::random(c.x, c.shape, 4), forward.inputs[0],
                          forward.inputs[1], run(forward)[1]},
                         {{"rms", c.rms ? 1.0 : 0.0}, {"bias", c.bias ? 1.0 : 0.0}},
                         {}};
      if (dsum) test.inputs.push_back(TestOperand::random(c.x, c.shape, 5));
      const reference::NormGradients expected = reference::norm_backward(
          test.inputs[0].values(), test.inputs[1].values(), test.inputs[2].values(),
          forward.expected[1], dsum ? test.inputs[4].values() : std::vector<double>{}, c.rms);
      test.expected = {expected.dx, expected.dweight};
      if (c.bias) test.expected.push_back(expected.dbias);
      test.tolerance = 1.5e-6;
      verify(test, label_of(c) + (dsum ? " dsum" : ""));
    }
}

TEST(Norm, ParameterGradientsTakeTheTypeOfTheAttribute) {
  const TensorType x(DType::bf16, {4, 8}), weight(DType::bf16, {8}), stats(DType::f32, {4, 2});
  const Types types = norm_backward_operation().infer(
      Types{x, x, weight, stats},
      {{"rms", 0}, {"bias", 1}, {"gradient_dtype", static_cast<double>(DType::f32)}});
  ASSERT_EQ(types.size(), 3u);
  EXPECT_EQ(types[0].dtype, DType::bf16);
  EXPECT_EQ(types[1].dtype, DType::f32);
  EXPECT_EQ(types[2].dtype, DType::f32);
}

// A mean a thousand times the deviation: one pass over squares would lose all digits.
TEST(Norm, VarianceIsTakenAroundTheMean) {
  OperationCase test = forward_case({{20, 300}, false, true, DType::f32, DType::f32});
  const Tensor x = test.inputs[0].view();
  for (std::int64_t i = 0; i < x.elements(); ++i) x.row<float>()[i] += 2000;
  test.expected[0] = reference::norm(test.inputs[0].values(), test.inputs[1].values(),
                                     test.inputs[2].values(), 1e-5, false)
                         .y;
  test.expected.resize(1);
  test.tolerance = 1e-4;  // the mean itself is exact to 2000 * 2^-24
  verify(test, "far from zero");
}

TEST(Norm, ReferenceGradientsAgreeWithFiniteDifferences) {
  for (const bool rms : {false, true}) {
    const auto x = TestOperand::random(DType::f32, {3, 7}, 1).values();
    const auto weight = TestOperand::random(DType::f32, {7}, 2).values();
    const auto bias = TestOperand::random(DType::f32, {7}, 3).values();
    const auto dy = TestOperand::random(DType::f32, {3, 7}, 4).values();
    const auto loss = [&](const auto& a, const auto& b, const auto& c) {
      return reference::weighted_sum(dy, reference::norm(a, b, c, 1e-5, rms).y);
    };
    const auto stats = reference::norm(x, weight, bias, 1e-5, rms).stats;
    const auto g = reference::norm_backward(dy, x, weight, stats, {}, rms);
    reference::expect_gradient([&](const auto& at) { return loss(at, weight, bias); }, x, g.dx);
    reference::expect_gradient([&](const auto& at) { return loss(x, at, bias); }, weight,
                               g.dweight);
    reference::expect_gradient([&](const auto& at) { return loss(x, weight, at); }, bias, g.dbias);
  }
}

TEST(ResidualNorm, IsResidualAddThenNormToTheBit) {
  const std::vector<std::int64_t> rng{5, 6, 7, 8};
  for (const std::int64_t columns : {3, 50, 256, 768, 2100, 8192, 8196})
    for (const double p : {0.0, 0.2})
      for (const bool rms : {false, true})
        for (DType dtype : kFloatTypes) {
          const std::int64_t sequence = columns < 4096 ? 7 : 1;
          const Shape shape{2 * sequence, columns};
          const TestOperand x = TestOperand::random(dtype, shape, 1),
                            delta = TestOperand::random(dtype, shape, 2),
                            weight = TestOperand::random(DType::f32, {columns}, 3),
                            bias = TestOperand::random(DType::f32, {columns}, 4);
          const Attributes attributes{{"eps", 1e-6},
                                      {"rms", rms ? 1.0 : 0.0},
                                      {"bias", rms ? 0.0 : 1.0},
                                      {"p", p},
                                      {"key", 3},
                                      {"sequence", static_cast<double>(sequence)}};
          OperationCase fused{
              residual_norm_operation(), residual_norm_kernel, {x, delta, weight}, attributes, {}};
          OperationCase add{
              residual_add_operation(), residual_add_kernel, {x, delta}, attributes, {}};
          if (!rms) fused.inputs.push_back(bias);
          if (p > 0) fused.inputs.push_back(TestOperand::integers(rng));
          if (p > 0) add.inputs.push_back(TestOperand::integers(rng));
          const TestOperand sum = run(add)[0];
          OperationCase norm{norm_operation(), norm_kernel, {sum, weight}, attributes, {}};
          if (!rms) norm.inputs.push_back(bias);
          const std::vector<TestOperand> expected = run(norm), found = run(fused);
          EXPECT_TRUE(found[0].element_bytes() == sum.element_bytes());
          EXPECT_TRUE(found[1].element_bytes() == expected[0].element_bytes());
          EXPECT_TRUE(found[2].element_bytes() == expected[1].element_bytes());
          verify(fused, std::to_string(columns) + " columns " + std::string(name_of(dtype)));
        }
}

TEST(ResidualNorm, GradientRuleNamesEveryInput) {
  const TensorType x(DType::f32, {10, 4}), w(DType::f32, {4}), rng(DType::i64, {4});
  const Types inputs{x, x, w, w, rng}, outputs{x, x, TensorType(DType::f32, {10, 2})};
  const GradientRule rule =
      residual_norm_operation().gradient(inputs, outputs, {{"p", 0.1}, {"bias", 1}, {"rms", 0}});
  ASSERT_EQ(rule.steps.size(), 2u);
  EXPECT_EQ(rule.steps[0].outputs, 3);
  EXPECT_EQ(rule.steps[1].operands[1].index, 4);
  EXPECT_EQ(rule.input_gradients.size(), 4u);
  for (const auto& [input, operand] : rule.input_gradients)
    EXPECT_EQ(operand.index, (std::vector<int>{0, 3, 1, 2})[static_cast<std::size_t>(input)]);
}

TEST(Norm, RefusesAWeightOfAnotherWidth) {
  const Types types{TensorType(DType::f32, {2, 7}), TensorType(DType::f32, {8})};
  EXPECT_THROW(norm_operation().infer(types, {{"rms", 0}, {"eps", 1}}), InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels
