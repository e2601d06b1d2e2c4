#include "kernels/ops/head_loss.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/math/float16.h"
#include "kernels/testing/head_loss_reference.h"
#include "kernels/testing/product_test_support.h"

namespace strata::kernels {
namespace {

using testing::relative_error;
using testing::run_operation;
using testing::Storage;

struct Case {
  DType dtype = DType::f32;
  std::int64_t n = 7, v = 50, h = 12, vocabulary = 50;
  DType gradient = DType::f32;
  std::int64_t gap = 0;
  double spread = 1.0;  ///< of x: larger logits
};

/// Inputs of one call.
struct Inputs {
  Storage x, w, targets, scale;
  std::vector<std::int32_t> target_values;
  Attributes attributes;

  explicit Inputs(const Case& c)
      : x({c.dtype, {c.n, c.h}, c.h + c.gap}, 1, c.spread),
        w({c.dtype, {c.v, c.h}, c.h + c.gap}, 2, 0.5),
        targets(TensorType(DType::i32, {c.n})),
        scale(TensorType(DType::f32, {2})),
        attributes{{"vocabulary", static_cast<double>(c.vocabulary)},
                   {"gradient_dtype", static_cast<double>(c.gradient)}} {
    std::mt19937 random(3);
    for (std::int64_t i = 0; i < c.n; ++i)
      target_values.push_back(static_cast<std::int32_t>(
          i % 5 == 3 ? -1 - i : static_cast<std::int64_t>(random()) % c.vocabulary));
    std::memcpy(targets.tensor().data, target_values.data(), target_values.size() * 4);
    const float scales[2] = {0.25F, 0.5F};
    std::memcpy(scale.tensor().data, scales, sizeof scales);
  }
  std::vector<Storage*> all() { return {&x, &w, &targets, &scale}; }
};

/// A logit as the backend under test stores it.
double stored(double logit, DType x) {
  const auto single = static_cast<float>(logit);
  switch (testing::logits_type(x)) {
    case DType::bf16:
      return bf16_to_f32(f32_to_bf16(single));
    case DType::f16:
      return f16_to_f32(f32_to_f16(single));
    default:
      return logit;
  }
}

reference::HeadLoss expected(Inputs& in, const Case& c) {
  return reference::head_loss(in.x.values(), in.w.values(), in.target_values, 0.25, 0.5,
                              c.vocabulary, c.n, c.v, c.h,
                              [&](double logit) { return stored(logit, c.dtype); });
}

void expect_right(const Case& c) {
  SCOPED_TRACE(std::string(name_of(c.dtype)) + " n " + std::to_string(c.n) + " v " +
               std::to_string(c.v) + " h " + std::to_string(c.h));
  Inputs in(c);
  const reference::HeadLoss right = expected(in, c);
  auto found = run_operation("head_loss", in.all(), in.attributes);
  // cuBLASLt's fp32 sums of 640 products were 3.5e-6 off on an H200; TF32 would be a hundred times
  // that.
  const double fine = c.dtype == DType::f32 ? 5e-6 : 4e-3;
  // Another order of sums may move a stored 16-bit logit by one unit.
  const double loss_bound = (c.dtype == DType::f32 ? 1e-6 : 1e-4) * right.loss;
  EXPECT_NEAR(found[0].values()[0], right.loss, loss_bound);
  EXPECT_LE(relative_error(found[1].values(), right.dx), fine);
  const std::vector<double> dw = found[2].values();
  EXPECT_LE(relative_error(dw, right.dw), std::max(fine, testing::tolerance(c.gradient)));
  EXPECT_EQ(found[2].type().dtype, c.gradient);
  EXPECT_TRUE(
      std::all_of(dw.begin() + c.vocabulary * c.h, dw.end(), [](double x) { return x == 0; }));
  auto evaluated = run_operation("head_loss_eval", in.all(), in.attributes);
  EXPECT_NEAR(evaluated[0].values()[0], right.loss, loss_bound);
}

TEST(HeadLoss, AgreesWithTheReferenceForAllTypesAndShapes) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    expect_right({.dtype = dtype, .n = 1, .v = 1, .h = 1, .vocabulary = 1});
    expect_right({.dtype = dtype, .n = 1, .v = 3, .h = 5, .vocabulary = 3});
    expect_right({.dtype = dtype});
    expect_right(
        {.dtype = dtype, .v = 384, .vocabulary = 257, .gap = 4});  // 127 columns of padding
    expect_right({.dtype = dtype, .n = 70, .v = 640, .h = 800, .vocabulary = 513});
    expect_right(
        {.dtype = dtype, .n = 530, .v = 3200, .h = 20, .vocabulary = 3100, .gradient = dtype});
    expect_right({.dtype = dtype, .n = 5, .v = 4100, .h = 7, .vocabulary = 4097});
    expect_right({.dtype = dtype, .n = 4, .v = 20096, .h = 3, .vocabulary = 20000});
  }
}

TEST(HeadLoss, SumsWeightGradientsOverChunksInRowOrder) {
  const auto [n, v] = testing::several_chunks();
  for (DType dtype : {DType::f32, DType::bf16, DType::f16})
    expect_right({.dtype = dtype, .n = n, .v = v, .h = 3, .vocabulary = v - 47, .gradient = dtype});
}

TEST(HeadLoss, LargeLogitsNeitherOverflowNorLoseTheLoss) {
  Case c{.n = 9, .v = 128, .h = 64, .vocabulary = 120, .spread = 60.0};
  Inputs in(c);
  const reference::HeadLoss right = expected(in, c);
  auto found = run_operation("head_loss", in.all(), in.attributes);
  EXPECT_NEAR(found[0].values()[0], right.loss, 1e-5 * right.loss);
  EXPECT_LE(relative_error(found[1].values(), right.dx), 1e-3);  // logits of 500 in fp32
}

TEST(HeadLoss, IgnoredRowsHaveNoLossAndNoGradient) {
  Case c{.n = 4};
  Inputs in(c);
  const std::int32_t none[4] = {-1, -100, -1, -1};
  std::memcpy(in.targets.tensor().data, none, sizeof none);
  auto found = run_operation("head_loss", in.all(), in.attributes);
  EXPECT_EQ(found[0].values()[0], 0.0);
  for (double value : found[1].values()) EXPECT_EQ(value, 0.0);
  for (double value : found[2].values()) EXPECT_EQ(value, 0.0);
}

TEST(HeadLoss, TargetsOutsideTheVocabularyAndNaNShowInTheLoss) {
  Case c{.vocabulary = 40};
  for (const char* name : {"head_loss", "head_loss_eval"}) {
    Inputs outside(c);
    outside.targets.tensor().row<std::int32_t>()[0] = 40;
    EXPECT_TRUE(std::isnan(run_operation(name, outside.all(), outside.attributes)[0].values()[0]));
    Inputs not_a_number(c);
    not_a_number.x.set(2, 3, NAN);
    EXPECT_TRUE(std::isnan(
        run_operation(name, not_a_number.all(), not_a_number.attributes)[0].values()[0]));
  }
}

TEST(HeadLoss, ATargetOutsideTheVocabularyLeavesPaddedRowsOfTheGradientZero) {
  Case c{.vocabulary = 40};
  Inputs outside(c);
  outside.targets.tensor().row<std::int32_t>()[0] = 44;
  const std::vector<double> dw =
      run_operation("head_loss", outside.all(), outside.attributes)[2].values();
  EXPECT_TRUE(
      std::all_of(dw.begin() + c.vocabulary * c.h, dw.end(), [](double x) { return x == 0; }));
}

TEST(HeadLoss, AnyThreadCountOrOrderGivesTheSameBits) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    Case c{.dtype = dtype, .n = 530, .v = 400, .h = 40, .vocabulary = 375};
    std::vector<std::vector<std::byte>> first;
    for (const auto& [name, run] : testing::runners_of_equal_bits()) {
      Inputs in(c);
      std::vector<std::vector<std::byte>> found;
      for (Storage& output : run_operation("head_loss", in.all(), in.attributes, run))
        found.push_back(output.bytes());
      found.push_back(run_operation("head_loss_eval", in.all(), in.attributes, run)[0].bytes());
      if (first.empty()) first = found;
      EXPECT_TRUE(found == first) << name << ", " << name_of(dtype);
    }
  }
}

TEST(HeadLoss, ReferenceGradientsAgreeWithFiniteDifferences) {
  const Case c{.n = 4, .v = 9, .h = 5, .vocabulary = 7};
  Inputs in(c);
  reference::Values x = in.x.values();
  reference::Values w = in.w.values();
  const auto loss = [&] {
    return reference::head_loss(x, w, in.target_values, 1, 1, c.vocabulary, c.n, c.v, c.h).loss;
  };
  const auto right =
      reference::head_loss(x, w, in.target_values, 1, 1, c.vocabulary, c.n, c.v, c.h);
  const auto expect_slopes = [&](reference::Values& values, const reference::Values& gradient) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = values[i];
      values[i] = value + 1e-5;
      const double above = loss();
      values[i] = value - 1e-5;
      const double below = loss();
      values[i] = value;
      EXPECT_NEAR((above - below) / 2e-5, gradient[i], 1e-8);
    }
  };
  expect_slopes(x, right.dx);
  expect_slopes(w, right.dw);
}

TEST(HeadLoss, CostsItsProductsAndItsLogits) {
  const Types inputs{TensorType(DType::bf16, {4, 8}), TensorType(DType::bf16, {10, 8}),
                     TensorType(DType::i32, {4}), TensorType(DType::f32, {2})};
  const Attributes attributes{{"vocabulary", 10.0}};
  const auto cost = [&](const Operation& operation) {
    return operation.cost(inputs, operation.infer(inputs, attributes), attributes);
  };
  const Cost train = cost(head_loss_operation()), eval = cost(head_loss_eval_operation());
  EXPECT_EQ(train.flops, 6 * 4 * 8 * 10);
  EXPECT_EQ(eval.flops, 2 * 4 * 8 * 10);
  constexpr double kLogits = 2 * 4 * 4 * 10;  // fp32, written and read
  EXPECT_EQ(train.bytes, 2 * 2 * (32 + 80) + 4 * 4 + 2 * 4 + 8 + kLogits);
  EXPECT_EQ(eval.bytes, 2 * (32 + 80) + 4 * 4 + 2 * 4 + 8 + kLogits);
}

TEST(HeadLoss, SaysWhatIsWrong) {
  const auto message = [](Types inputs, double vocabulary) -> std::string {
    try {
      head_loss_operation().infer(inputs, {{"vocabulary", vocabulary}});
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "nothing thrown";
  };
  const TensorType x(DType::f32, {4, 8}), w(DType::f32, {10, 8}), targets(DType::i32, {4}),
      scale(DType::f32, {2});
  EXPECT_EQ(message({x, w, targets, scale}, 10), "nothing thrown");
  EXPECT_EQ(message({x, w, targets, scale}, 11),
            "head_loss: attribute vocabulary is 11, expected 1 to 10, the rows of W");
  EXPECT_EQ(message({x, TensorType(DType::f32, {10, 9}), targets, scale}, 10),
            "head_loss: W is fp32[10, 9], expected [V, 8] for x of fp32[4, 8]");
  EXPECT_EQ(message({x, w, TensorType(DType::i32, {5}), scale}, 10),
            "head_loss: targets is int32[5], expected int32[4]");
}

}  // namespace
}  // namespace strata::kernels
