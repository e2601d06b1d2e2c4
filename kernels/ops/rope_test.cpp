#include "kernels/ops/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/testing/finite_difference.h"
#include "kernels/testing/layer_test_support.h"
#include "kernels/testing/rope_reference.h"

namespace strata::kernels {
namespace {

/// Frequencies of head size 16 as transformers 5.23's modeling_rope_utils computes them (in fp32).
struct Golden {
  const char* name;
  Attributes attributes;
  double factor;
  std::vector<double> frequencies;
};

const Golden kGolden[] = {
    {"none",
     {{"theta", 10000}},
     1,
     {1, 0.31622776, 0.1, 0.031622776, 0.01, 0.0031622776, 0.001, 0.00031622776}},
    {"linear",
     {{"theta", 10000}, {"scaling", 1}, {"factor", 4}},
     1,
     {0.25, 0.07905694097280502, 0.02500000037252903, 0.007905694656074047, 0.0024999999441206455,
      0.0007905694656074047, 0.0002500000118743628, 7.905694656074047e-05}},
    {"llama3",
     {{"theta", 500000}, {"scaling", 2}, {"factor", 8}, {"low", 1}, {"high", 4}, {"original", 256}},
     1,
     {1.0, 0.193922758102417, 0.010538230650126934, 0.0009115831344388425, 0.00017677668074611574,
      3.428102354519069e-05, 6.647869668086059e-06, 1.289173155782919e-06}},
    {"yarn",
     {{"theta", 10000}, {"scaling", 3}, {"factor", 4}, {"original", 1024}},
     1.138629436111989,
     {1.0, 0.3162277638912201, 0.08125000447034836, 0.019764237105846405, 0.0043750000186264515,
      0.0007905694656074047, 0.0002500000118743628, 7.905694656074047e-05}},
    {"yarn with everything set",
     {{"theta", 1000000},
      {"scaling", 3},
      {"factor", 8},
      {"original", 512},
      {"beta_fast", 16},
      {"beta_slow", 2},
      {"attention_factor", 1.25}},
     1.25,
     {1.0, 0.12596145272254944, 0.01317615807056427, 0.0007029266562312841, 0.0001250000059371814,
      2.2228492525755428e-05, 3.9528467823402025e-06, 7.029266839708725e-07}},
    {"yarn whose ramp would end beyond the head",
     {{"theta", 50}, {"scaling", 3}, {"factor", 4}, {"original", 131072}, {"beta_fast", 1024}},
     1.138629436111989,
     {1.0, 0.6132375597953796, 0.3760603070259094, 0.2306143045425415, 0.1414213627576828,
      0.0867248922586441, 0.05318295955657959, 0.029895972460508347}},
};

TEST(RopeTable, FrequenciesAreThoseOfTransformers) {
  for (const Golden& golden : kGolden) {
    Attributes attributes = golden.attributes;
    attributes.set("head_size", 16);
    std::vector<double> frequencies(8);
    EXPECT_NEAR(rope_frequencies(attributes, frequencies), golden.factor, 1e-12) << golden.name;
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_NEAR(frequencies[i] / golden.frequencies[i], 1, 5e-7) << golden.name << ' ' << i;
  }
}

/// Returns the numbers to which every backend must round.
std::vector<double> table_reference(const Attributes& attributes, int sequence,
                                    std::size_t head_size) {
  std::vector<double> table, frequencies(head_size / 2);
  const double factor = rope_frequencies(attributes, frequencies);
  for (int t = 0; t < sequence; ++t) {
    for (double f : frequencies) table.push_back(static_cast<float>(factor * std::cos(t * f)));
    for (double f : frequencies) table.push_back(static_cast<float>(factor * std::sin(t * f)));
  }
  return table;
}

TEST(RopeTable, HoldsCosinesThenSines) {
  for (const Golden& golden : kGolden) {
    Attributes attributes = golden.attributes;
    attributes.set("head_size", 16);
    attributes.set("sequence", 300);
    OperationCase test{rope_table_operation(), rope_table_kernel, {}, attributes, {{}}};
    test.expected[0] = table_reference(attributes, 300, 16);
    test.tolerance = 0;
    verify(test, golden.name);
  }
}

// Heads have more pairs than a launch of the CUDA kernel takes.
TEST(RopeTable, TakesLargeHeads) {
  const Attributes attributes{{"theta", 10000}, {"head_size", 600}, {"sequence", 5}};
  OperationCase test{rope_table_operation(), rope_table_kernel, {}, attributes, {{}}};
  test.expected[0] = table_reference(attributes, 5, 600);
  test.tolerance = 0;
  verify(test, "head size 600");
}

TestOperand table_of(std::int64_t sequence, std::int64_t head_size) {
  return run({rope_table_operation(),
              rope_table_kernel,
              {},
              {{"sequence", static_cast<double>(sequence)},
               {"head_size", static_cast<double>(head_size)},
               {"theta", 10000}},
              {}})[0];
}

// Heads fill less than a pack, odd parts of packs or whole ones, and are more than a thread takes.
TEST(Rope, AgreesWithTheReference) {
  for (const std::int64_t head_size : {2, 10, 64, 128})
    for (const std::int64_t heads : {3, 6})
      for (const bool inverse : {false, true})
        for (DType dtype : kFloatTypes) {
          OperationCase test{
              rope_operation(),
              rope_kernel,
              {TestOperand::random(dtype, {22, heads, head_size}, 1), table_of(13, head_size)},
              {{"sequence", 11}, {"inverse", inverse ? 1.0 : 0.0}},
              {}};
          test.expected = {reference::rope(test.inputs[0].values(), test.inputs[1].values(),
                                           static_cast<std::size_t>(heads),
                                           static_cast<std::size_t>(head_size), 11, inverse)};
          verify(test, std::to_string(heads) + " heads of " + std::to_string(head_size) + " " +
                           std::string(name_of(dtype)));
        }
}

TEST(Rope, TakesATableWithGaps) {
  const TestOperand table = table_of(11, 64);
  OperationCase test{rope_operation(),
                     rope_kernel,
                     {TestOperand::random(DType::f32, {22, 2, 64}, 1), table.restrided(3)},
                     {{"sequence", 11}},
                     {}};
  test.expected = {reference::rope(test.inputs[0].values(), table.values(), 2, 64, 11, false)};
  expect_close(test, run(test), "table with gaps");
}

TEST(Rope, ReferenceInverseIsTheGradient) {
  const auto x = TestOperand::random(DType::f32, {4, 2, 6}, 1).values();
  const auto dy = TestOperand::random(DType::f32, {4, 2, 6}, 2).values();
  const auto table = table_of(2, 6).values();
  reference::expect_gradient(
      [&](const auto& at) {
        return reference::weighted_sum(dy, reference::rope(at, table, 2, 6, 2, false));
      },
      x, reference::rope(dy, table, 2, 6, 2, true));
}

TEST(Rope, GradientFlipsTheDirection) {
  const Types inputs{TensorType(DType::f32, {4, 2, 6}), TensorType(DType::f32, {4, 6})};
  for (const double inverse : {0.0, 1.0}) {
    const GradientRule rule = rope_operation().gradient(inputs, {}, {{"inverse", inverse}});
    EXPECT_EQ(rule.steps.at(0).extra.real("inverse"), 1 - inverse);
  }
}

TEST(Rope, RefusesATableThatIsTooShort) {
  const Types inputs{TensorType(DType::f32, {8, 2, 6}), TensorType(DType::f32, {4, 6})};
  EXPECT_THROW(rope_operation().infer(inputs, {{"sequence", 8}}), InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels
