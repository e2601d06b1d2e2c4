#include "kernels/ops/linear.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/testing/linear_reference.h"
#include "kernels/testing/product_test_support.h"

namespace strata::kernels {
namespace {

using testing::relative_error;
using testing::run_operation;
using testing::Storage;
using testing::tolerance;

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};

/// n rows, m outputs, k inputs; `gap` elements between rows.
struct Case {
  std::int64_t n, m, k;
  bool transposed;
  std::int64_t gap;
};

const Case kCases[] = {{1, 1, 1, false, 0},      {1, 70, 33, true, 0},
                       {5, 3, 2, false, 7},      {130, 257, 65, true, 3},
                       {129, 31, 200, false, 5}, {300, 400, 1100, true, 0},
                       {520, 400, 48, false, 0}, {64, 1030, 16, true, 2}};

TensorType matrix(DType dtype, std::int64_t rows, std::int64_t cols, std::int64_t gap) {
  return {dtype, {rows, cols}, cols + gap};
}

std::string name_of_case(const Case& c, DType dtype) {
  return std::string(name_of(dtype)) + " n " + std::to_string(c.n) + " m " + std::to_string(c.m) +
         " k " + std::to_string(c.k) + (c.transposed ? " transposed" : "");
}

TEST(Linear, AgreesWithTheReferenceForAllTypesShapesAndViews) {
  for (DType dtype : kTypes)
    for (const Case& c : kCases) {
      SCOPED_TRACE(name_of_case(c, dtype));
      Storage x(matrix(dtype, c.n, c.k, c.gap), 1);
      Storage w(c.transposed ? matrix(dtype, c.k, c.m, c.gap) : matrix(dtype, c.m, c.k, c.gap), 2);
      Storage bias(TensorType(dtype, {c.m}), 3);
      const Attributes attributes{{"transposed", c.transposed ? 1 : 0}};
      const auto expected = [&](const reference::Values& b) {
        return reference::linear(x.values(), w.values(), b, c.transposed, c.n, c.m, c.k);
      };
      auto y = run_operation("linear", {&x, &w, &bias}, attributes);
      reference::Values bias_values;
      for (std::int64_t i = 0; i < c.m; ++i) {
        float value = 0;
        convert_range(dtype, bias.tensor().data + i * size_of(dtype), DType::f32,
                      reinterpret_cast<std::byte*>(&value), 1);
        bias_values.push_back(value);
      }
      EXPECT_LE(relative_error(y[0].values(), expected(bias_values)), tolerance(dtype));
      y = run_operation("linear", {&x, &w}, attributes);
      EXPECT_LE(relative_error(y[0].values(), expected({})), tolerance(dtype));
    }
}

TEST(Linear, GradientsAgreeWithTheReferenceForAllTypesShapesAndViews) {
  for (DType dtype : kTypes)
    for (const Case& c : kCases) {
      SCOPED_TRACE(name_of_case(c, dtype));
      Storage x(matrix(dtype, c.n, c.k, c.gap), 1);
      Storage dy(matrix(dtype, c.n, c.m, c.gap), 4);
      Storage w(c.transposed ? matrix(dtype, c.k, c.m, c.gap) : matrix(dtype, c.m, c.k, c.gap), 2);
      Attributes attributes{{"transposed", c.transposed ? 1 : 0}};
      auto dx = run_operation("linear_backward_input", {&dy, &w}, attributes);
      EXPECT_LE(
          relative_error(dx[0].values(), reference::linear_backward_input(
                                             dy.values(), w.values(), c.transposed, c.n, c.m, c.k)),
          tolerance(dtype));
      const auto dw =
          reference::linear_backward_weight(dy.values(), x.values(), c.transposed, c.n, c.m, c.k);
      const auto dbias = reference::linear_backward_bias(dy.values(), c.n, c.m);
      for (DType produced : {dtype, DType::f32}) {
        attributes.set("gradient_dtype", static_cast<double>(produced));
        auto found = run_operation("linear_backward_weight", {&dy, &x}, attributes);
        EXPECT_EQ(found[0].type().dtype, produced);
        EXPECT_LE(relative_error(found[0].values(), dw), tolerance(produced));
        found = run_operation("linear_backward_bias", {&dy}, attributes);
        EXPECT_LE(relative_error(found[0].values(), dbias), tolerance(produced));
      }
    }
}

TEST(Linear, ReferenceGradientsAgreeWithFiniteDifferences) {
  const std::int64_t n = 3, m = 4, k = 5;
  for (bool transposed : {false, true}) {
    Storage xs(TensorType(DType::f32, {n, k}), 1), ws(TensorType(DType::f32, {m, k}), 2);
    Storage bs(TensorType(DType::f32, {m, 1}), 3), dys(TensorType(DType::f32, {n, m}), 4);
    reference::Values inputs[3] = {xs.values(), ws.values(), bs.values()};
    const reference::Values dy = dys.values();
    const auto objective = [&] {
      const auto y = reference::linear(inputs[0], inputs[1], inputs[2], transposed, n, m, k);
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
      return sum;
    };
    const reference::Values gradients[3] = {
        reference::linear_backward_input(dy, inputs[1], transposed, n, m, k),
        reference::linear_backward_weight(dy, inputs[0], transposed, n, m, k),
        reference::linear_backward_bias(dy, n, m)};
    for (int which = 0; which < 3; ++which)
      for (std::size_t i = 0; i < inputs[which].size(); ++i) {
        const double value = inputs[which][i];
        inputs[which][i] = value + 1e-4;
        const double above = objective();
        inputs[which][i] = value - 1e-4;
        const double below = objective();
        inputs[which][i] = value;
        EXPECT_NEAR((above - below) / 2e-4, gradients[which][i], 1e-8);
      }
  }
}

TEST(Linear, AnyThreadCountOrOrderGivesTheSameBits) {
  for (DType dtype : kTypes) {
    Storage x(TensorType(dtype, {300, 200}), 1), w(TensorType(dtype, {500, 200}), 2);
    Storage dy(TensorType(dtype, {300, 500}), 3);
    std::vector<std::vector<std::byte>> first;
    for (const auto& [name, run] : testing::runners_of_equal_bits()) {
      std::vector<std::vector<std::byte>> found;
      found.push_back(run_operation("linear", {&x, &w}, {}, run)[0].bytes());
      found.push_back(run_operation("linear_backward_input", {&dy, &w}, {}, run)[0].bytes());
      found.push_back(run_operation("linear_backward_weight", {&dy, &x}, {}, run)[0].bytes());
      found.push_back(run_operation("linear_backward_bias", {&dy}, {}, run)[0].bytes());
      if (first.empty()) first = found;
      EXPECT_TRUE(found == first) << name << ", " << name_of(dtype);
    }
  }
}

TEST(Linear, TakesHeadsAsThreeDimensions) {
  Storage x(TensorType(DType::f32, {6, 4, 8}), 1), w(TensorType(DType::f32, {5, 32}), 2);
  auto y = run_operation("linear", {&x, &w}, {});
  EXPECT_EQ(y[0].type(), TensorType(DType::f32, {6, 5}));
  EXPECT_LE(
      relative_error(y[0].values(), reference::linear(x.values(), w.values(), {}, false, 6, 5, 32)),
      2e-6);
}

std::string message_of(const auto& function) {
  try {
    function();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(Linear, SaysWhichOperandIsWrong) {
  const Operation& linear = linear_operation();
  const TensorType x(DType::f32, {4, 8});
  EXPECT_EQ(message_of([&] {
              linear.infer(Types{x, TensorType(DType::f32, {5, 7})}, {});
            }),
            "linear: W is fp32[5, 7], expected an input size of 8");
  EXPECT_EQ(
      message_of([&] {
        linear.infer(Types{x, TensorType(DType::f32, {5, 8}), TensorType(DType::f32, {4})}, {});
      }),
      "linear: bias is fp32[4], expected fp32[5]");
  EXPECT_EQ(message_of([&] {
              linear.infer(Types{x, TensorType(DType::i32, {5, 8})}, {});
            }),
            "linear: W is int32[5, 8], expected fp32, bf16 or fp16");
  EXPECT_EQ(message_of([&] { linear.infer(Types{x}, {}); }), "linear: 1 operands, expected 2 to 3");
  EXPECT_EQ(
      message_of([&] {
        linear_backward_weight_operation().infer(Types{TensorType(DType::f32, {3, 5}), x}, {});
      }),
      "linear_backward_weight: x is fp32[4, 8], expected a number of rows of 3");
  EXPECT_EQ(message_of([&] {
              linear.infer(Types{TensorType(DType::f32, {0, 8}), x}, {});
            }),
            "linear: x is fp32[0, 8], expected two or three dimensions, none of them 0");
}

TEST(Linear, CostsTwoOperationsPerMultiplication) {
  const Types inputs{TensorType(DType::bf16, {4, 8}), TensorType(DType::bf16, {5, 8})};
  const Types outputs = linear_operation().infer(inputs, {});
  const Cost cost = linear_operation().cost(inputs, outputs, {});
  EXPECT_EQ(cost.flops, 2 * 4 * 8 * 5);
  EXPECT_EQ(cost.bytes, 2 * (32 + 40 + 20));
}

TEST(Linear, GradientRuleNamesEachInputOnce) {
  const Types inputs(3, TensorType(DType::f32, {1, 1}));
  const GradientRule with_bias = linear_operation().gradient(inputs, {}, {});
  EXPECT_EQ(with_bias.steps.size(), 3U);
  EXPECT_EQ(with_bias.input_gradients.size(), 3U);
  EXPECT_EQ(linear_operation().gradient(TypeSpan(inputs).first(2), {}, {}).steps.size(), 2U);
}

}  // namespace
}  // namespace strata::kernels
