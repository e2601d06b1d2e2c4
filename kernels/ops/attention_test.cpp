#include "kernels/ops/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/testing/test_directory.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/testing/attention_reference.h"
#include "kernels/testing/finite_difference.h"
#include "kernels/testing/layer_test_support.h"

namespace strata::kernels {
namespace {

using reference::AttentionSizes;

std::vector<std::int64_t> rng_of(std::size_t batch) {
  std::vector<std::int64_t> rng{1234, 7};
  for (std::size_t b = 0; b < batch; ++b) rng.push_back(static_cast<std::int64_t>(100 + 3 * b));
  return rng;
}

AttentionSizes sizes(std::size_t batch, std::size_t sequence, std::size_t heads,
                     std::size_t kv_heads, std::size_t head_size, double p = 0) {
  return {batch,    sequence,  heads,
          kv_heads, head_size, 1 / std::sqrt(static_cast<double>(head_size)),
          p,        5,         rng_of(batch)};
}

std::string label_of(const AttentionSizes& s, DType dtype) {
  return "B " + std::to_string(s.batch) + " T " + std::to_string(s.sequence) + " heads " +
         std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + " D " +
         std::to_string(s.head_size) + " p " + std::to_string(s.p) + " " +
         std::string(name_of(dtype));
}

Attributes attributes_of(const AttentionSizes& s) {
  Attributes attributes{{"sequence", static_cast<double>(s.sequence)}, {"scale", s.scale}};
  if (s.p > 0) {
    attributes.set("p", s.p);
    attributes.set("key", static_cast<double>(s.key));
  }
  return attributes;
}

/// Returns a gap that keeps rows aligned if they were.
std::int64_t gap_of(const AttentionSizes& s) { return s.head_size % 8 == 0 ? 8 : 7; }

TestOperand heads_operand(const AttentionSizes& s, std::size_t heads, DType dtype, unsigned seed) {
  return TestOperand::random(
      dtype,
      {static_cast<std::int64_t>(s.batch * s.sequence), static_cast<std::int64_t>(heads),
       static_cast<std::int64_t>(s.head_size)},
      seed);
}

OperationCase forward_case(const AttentionSizes& s, DType dtype) {
  OperationCase test{attention_operation(),
                     attention_kernel,
                     {heads_operand(s, s.heads, dtype, 1), heads_operand(s, s.kv_heads, dtype, 2),
                      heads_operand(s, s.kv_heads, dtype, 3)},
                     attributes_of(s),
                     {}};
  test.gap = gap_of(s);
  // Bounds the error of the LSE: hardware has exponentials to two units in the last place, and
  // libraries choose the order of sums. The backward pass rounds to 16 bits anyway (2e-3).
  if (dtype != DType::f32 && runs_on_gpu()) test.tolerance = 1e-5;
  const reference::Attention expected = reference::attention(
      s, test.inputs[0].values(), test.inputs[1].values(), test.inputs[2].values());
  test.expected = {expected.o, expected.lse};
  if (s.p > 0) test.inputs.push_back(TestOperand::integers(s.rng));
  return test;
}

OperationCase backward_case(const AttentionSizes& s, DType dtype) {
  const OperationCase forward = forward_case(s, dtype);
  std::vector<TestOperand> outputs = run(forward);
  OperationCase test{attention_backward_operation(),
                     attention_backward_kernel,
                     {heads_operand(s, s.heads, dtype, 4), forward.inputs[0], forward.inputs[1],
                      forward.inputs[2], outputs[0], outputs[1]},
                     attributes_of(s),
                     {}};
  test.gap = gap_of(s);
  const reference::AttentionGradients expected =
      reference::attention_backward(s, test.inputs[0].values(), test.inputs[1].values(),
                                    test.inputs[2].values(), test.inputs[3].values());
  test.expected = {expected.dq, expected.dk, expected.dv};
  if (s.p > 0) test.inputs.push_back(TestOperand::integers(s.rng));
  return test;
}

// Cases: one tile, tiles with a rest, sequences that are no multiple of 4, groups of heads, odd
// head sizes.
const AttentionSizes kSizes[] = {sizes(1, 1, 1, 1, 8),         sizes(2, 7, 3, 1, 5),
                                 sizes(2, 64, 2, 2, 64),       sizes(1, 70, 4, 2, 16),
                                 sizes(2, 129, 2, 1, 33),      sizes(1, 200, 3, 3, 64),
                                 sizes(1, 65, 2, 1, 256),      sizes(2, 50, 2, 2, 20, 0.1),
                                 sizes(1, 131, 4, 2, 24, 0.5), sizes(1, 192, 2, 1, 64, 0.2)};

// Cases for tiles on tensor cores: several tiles of queries and of keys, head sizes that do and do
// not fill a tile's width, tails of a few rows, eight query heads of one key head, dropout at every
// width.
const AttentionSizes kTiledSizes[] = {sizes(1, 130, 1, 1, 32),      sizes(2, 33, 2, 1, 40),
                                      sizes(1, 97, 2, 1, 96, 0.1),  sizes(1, 150, 1, 1, 128),
                                      sizes(1, 71, 8, 1, 64),       sizes(1, 34, 8, 1, 128, 0.3),
                                      sizes(1, 101, 1, 1, 192),     sizes(1, 66, 2, 1, 256, 0.5),
                                      sizes(1, 263, 1, 1, 64, 0.2), sizes(1, 136, 2, 2, 120, 0.4)};
constexpr DType kHalfTypes[] = {DType::bf16, DType::f16};

TEST(Attention, TilesAgreeWithTheReference) {
  for (const AttentionSizes& s : kTiledSizes)
    for (DType dtype : kHalfTypes) verify(forward_case(s, dtype), label_of(s, dtype));
}

TEST(Attention, BackwardTilesAgreeWithTheReference) {
  for (const AttentionSizes& s : kTiledSizes)
    for (DType dtype : kHalfTypes) verify(backward_case(s, dtype), label_of(s, dtype));
}

TEST(Attention, AgreesWithTheReference) {
  for (const AttentionSizes& s : kSizes)
    for (DType dtype : kFloatTypes) verify(forward_case(s, dtype), label_of(s, dtype));
}

// Outputs of 16 bits enter the backward pass rounded, hence its wider tolerance there.
TEST(Attention, BackwardAgreesWithTheReference) {
  for (const AttentionSizes& s : kSizes)
    for (DType dtype : kFloatTypes) {
      if (dtype != DType::f32 && s.sequence < 60) continue;
      OperationCase test = backward_case(s, dtype);
      verify(test, label_of(s, dtype));
    }
}

TEST(Attention, ReferenceGradientsAgreeWithFiniteDifferences) {
  for (const AttentionSizes& s : {sizes(2, 5, 2, 1, 3), sizes(1, 6, 4, 2, 2, 0.4)}) {
    const auto q = heads_operand(s, s.heads, DType::f32, 1).values();
    const auto k = heads_operand(s, s.kv_heads, DType::f32, 2).values();
    const auto v = heads_operand(s, s.kv_heads, DType::f32, 3).values();
    const auto w = heads_operand(s, s.heads, DType::f32, 4).values();
    const reference::AttentionGradients g = reference::attention_backward(s, w, q, k, v);
    const auto loss = [&](const auto& a, const auto& b, const auto& c) {
      return reference::weighted_sum(w, reference::attention(s, a, b, c).o);
    };
    reference::expect_gradient([&](const auto& x) { return loss(x, k, v); }, q, g.dq);
    reference::expect_gradient([&](const auto& x) { return loss(q, x, v); }, k, g.dk);
    reference::expect_gradient([&](const auto& x) { return loss(q, k, x); }, v, g.dv);
  }
}

// Scores of a few hundred: the maximum must be taken out before exponentials.
TEST(Attention, LargeScoresDoNotOverflow) {
  const AttentionSizes s{1, 100, 1, 1, 64, 10.0};
  OperationCase test = forward_case(s, DType::f32);
  test.tolerance = 1e-4;  // scores near 1000 carry an error near 1e-4 in fp32
  verify(test, "large scores");
}

TEST(Attention, RefusesHeadsThatDoNotDivide) {
  const TensorType q(DType::f32, {8, 3, 4}), k(DType::f32, {8, 2, 4});
  const Types types{q, k, k};
  EXPECT_THROW(attention_operation().infer(types, {{"sequence", 8}, {"scale", 1}}),
               InvalidArgument);
}

TEST(Attention, RefusesScalesThatAreNotPositive) {
  const TensorType q(DType::f32, {8, 2, 4}), lse(DType::f32, {1, 2, 8});
  const Types forward{q, q, q}, backward{q, q, q, q, q, lse};
  for (const double scale : {-0.125, 0.0, std::numeric_limits<double>::quiet_NaN(), 1e300}) {
    const Attributes attributes{{"sequence", 8}, {"scale", scale}};
    const std::string message = message_of<InvalidArgument>(
        [&] { (void)attention_operation().infer(forward, attributes); });
    EXPECT_EQ(message.rfind("attention: scale is " + std::to_string(scale), 0), 0U) << message;
    EXPECT_THROW((void)attention_backward_operation().infer(backward, attributes), InvalidArgument);
  }
}

}  // namespace
}  // namespace strata::kernels
