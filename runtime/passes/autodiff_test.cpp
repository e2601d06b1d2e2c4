#include "runtime/passes/autodiff.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "runtime/graph/graph_builder.h"
#include "runtime/graph/state_names.h"
#include "runtime/testing/lone_rank.h"
#include "runtime/testing/small_model.h"

namespace strata::runtime {
namespace {

std::string gradient_of(const ParameterUnit& unit) { return "d " + parameter_name(unit.name); }

/// Checks for each tensor that the slope of the loss along the gradient is the gradient's norm, by
/// central differences. `second` names a loss to add; "" for none.
void expect_slopes(SmallModel model, const std::string& second = "") {
  differentiate(model.graph, {});
  LoneRank rank(std::move(model.graph), model.loss, 3);
  rank.run();
  for (const ParameterUnit& unit : rank.units())
    for (const Segment& segment : unit.segments) {
      const auto at = static_cast<std::size_t>(segment.offset_elements);
      const auto count = static_cast<std::size_t>(segment.elements);
      const auto gradient = rank.storage<float>(gradient_of(unit)).subspan(at, count);
      const std::vector<float> direction(gradient.begin(), gradient.end());
      double squares = 0;
      for (float g : direction) squares += double{g} * g;
      const double norm = std::sqrt(squares);
      ASSERT_GT(norm, 1e-4) << segment.name;
      const auto values = rank.storage<float>(parameter_name(unit.name)).subspan(at, count);
      const std::vector<float> kept(values.begin(), values.end());
      constexpr double kStep = 0.01;
      const auto loss_at = [&](double step) {
        for (std::size_t i = 0; i < count; ++i)
          values[i] = static_cast<float>(kept[i] + step * direction[i] / norm);
        const double loss = rank.run();
        return second.empty() ? loss : loss + rank.storage<double>(second)[0];
      };
      const double slope = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
      std::copy(kept.begin(), kept.end(), values.begin());
      EXPECT_NEAR(slope / norm, 1, 0.01) << segment.name;
    }
}

TEST(Differentiate, GivesTheSlopeOfTheLoss) { expect_slopes(small_model({.tied_head = false})); }
TEST(Differentiate, AddsBothUsesOfATiedWeight) { expect_slopes(small_model({.tied_head = true})); }
TEST(Differentiate, SeesTheSameDropoutForwardAndBackward) {
  expect_slopes(small_model({.dropout = 0.2}));
}

TEST(Differentiate, AddsWhatTwoHeadsGiveToOneTableAndToOneView) {
  GraphBuilder b(DType::f32, 2, 8);
  b.begin_block("layer");
  const ValueId table = b.matrix({{"table", 128}}, 16, {});
  const ValueId qkv = b.matrix({{"qkv", 48}}, 16, {});
  const auto attend = [&](ValueId x) {
    return b.attention(b.split_heads(b.linear(x, {qkv}), 2, 2, 8), 1, 0);
  };
  const ValueId x = attend(b.embedding(table, kNoValue));  // a view of the attention's output
  const ValueId first = b.head_loss(x, table, 128);
  const ValueId second = b.head_loss(attend(x), table, 128);
  SmallModel model{b.finish(), first};
  model.graph.make_persistent(second, "second");
  expect_slopes(std::move(model), "second");
}

TEST(Differentiate, FillsTheGapsOfEachUnitsGradientWithZeros) {
  SmallModel model = small_model({.hidden = 40, .width = 72});
  differentiate(model.graph, {});
  std::set<std::string> filled;
  for (const Node& node : model.graph.nodes)
    if (node.operation->name == "fill_zero") {
      EXPECT_TRUE(filled.insert(node.label).second) << node.label << " stands twice";
    }
  EXPECT_TRUE(filled.contains("d layer.0.vectors.gaps"));
  LoneRank rank(std::move(model.graph), model.loss, 3);
  rank.run();
  int gaps = 0;
  for (const ParameterUnit& unit : rank.units()) {
    const auto gradient = rank.storage<float>(gradient_of(unit));
    std::vector<bool> covered(gradient.size(), false);
    for (const Segment& s : unit.segments)
      for (std::int64_t i = 0; i < s.padded_elements; ++i)
        covered[static_cast<std::size_t>(s.offset_elements + i)] = true;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      EXPECT_TRUE(std::isfinite(gradient[i])) << unit.name << " element " << i;  // all are written
      if (covered[i]) continue;
      ++gaps;
      EXPECT_EQ(gradient[i], 0) << unit.name << " element " << i;
    }
  }
  EXPECT_GT(gaps, 100);
}

TEST(Differentiate, MakesOneFlatGradientPerUnitAndNoneForFrozenOnes) {
  SmallModel model = small_model({});
  const std::size_t frozen = 1;  // the first layer's vectors or matrices
  std::vector<bool> is_frozen(model.graph.units.size(), false);
  is_frozen[frozen] = true;
  differentiate(model.graph, {.frozen = is_frozen});
  for (std::size_t u = 0; u < model.graph.units.size(); ++u) {
    const ValueId gradient = model.graph.unit_gradients[u];
    if (u == frozen) {
      EXPECT_EQ(gradient, kNoValue);
      continue;
    }
    ASSERT_NE(gradient, kNoValue) << model.graph.units[u].name;
    EXPECT_EQ(model.graph.values[gradient].offset_bytes, 0);
    EXPECT_EQ(model.graph.bytes(gradient), model.graph.bytes(model.graph.root_of(gradient)));
    EXPECT_EQ(model.graph.type(gradient).shape.elements(), model.graph.units[u].elements);
  }
}

TEST(Differentiate, AFrozenUnitChangesNoOtherGradient) {
  SmallModel all = small_model({}), some = small_model({});
  std::vector<bool> frozen(some.graph.units.size(), false);
  frozen[1] = true;
  differentiate(all.graph, {});
  differentiate(some.graph, {.frozen = frozen});
  EXPECT_LT(some.graph.nodes.size(), all.graph.nodes.size());
  LoneRank a(std::move(all.graph), all.loss, 3), b(std::move(some.graph), some.loss, 3);
  EXPECT_EQ(a.run(), b.run());
  for (std::size_t u = 0; u < a.units().size(); ++u) {
    if (u == 1) continue;
    const auto x = a.storage<float>(gradient_of(a.units()[u]));
    const auto y = b.storage<float>(gradient_of(b.units()[u]));
    EXPECT_TRUE(std::equal(x.begin(), x.end(), y.begin(), y.end())) << a.units()[u].name;
  }
}

TEST(Differentiate, LeavesTheForwardPassAsItWasAndAppendsBackwardNodesOfTheSameBlocks) {
  const SmallModel before = small_model({});
  SmallModel after = small_model({});
  differentiate(after.graph, {});
  std::vector<std::string> forward, expected;
  for (const Node& node : before.graph.nodes) expected.push_back(node.label);
  int last_block = static_cast<int>(after.graph.blocks.size()), backward = 0;
  for (const Node& node : after.graph.nodes) {
    if (node.pass == Pass::forward) {
      forward.push_back(node.label);
      EXPECT_EQ(backward, 0) << node.label;
    } else {
      EXPECT_LE(node.block, last_block) << node.label;  // the last block comes first
      last_block = node.block;
      ++backward;
    }
  }
  EXPECT_EQ(forward, expected);
  EXPECT_GT(backward, 10);
}

TEST(Differentiate, WritesGradientsInTheProducedType) {
  SmallModel model = small_model({});
  differentiate(model.graph, {DType::bf16});
  for (ValueId gradient : model.graph.unit_gradients)
    EXPECT_EQ(model.graph.type(gradient).dtype, DType::bf16);
}

}  // namespace
}  // namespace strata::runtime
