#include "runtime/passes/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "core/error.h"
#include "runtime/graph/state_names.h"
#include "runtime/passes/autodiff.h"
#include "runtime/program/verifier.h"
#include "runtime/testing/lone_rank.h"
#include "runtime/testing/small_model.h"

namespace strata::runtime {
namespace {

using testing::HasSubstr;

constexpr int kLayers = 8;
const SmallModelShape kShape{
    .layers = kLayers, .width = 128, .batch = 4, .sequence = 16, .dropout = 0.1};

enum class What : std::uint8_t { everything, norms_and_activations };

/// A range of blocks, [first, last].
using BlockRange = std::pair<int, int>;

/// Layers [first, last] are blocks [first + 1, last + 1]: the embedding is block 0.
std::vector<BlockRange> ranges_of(int layers_each) {
  std::vector<BlockRange> ranges;
  for (int layer = 0; layer < kLayers; layer += layers_each)
    ranges.emplace_back(layer + 1, layer + layers_each);
  return ranges;
}

void recompute(Graph& graph, const std::vector<BlockRange>& ranges, What what = What::everything) {
  SavedChoices choices(graph);
  for (const auto& [first, last] : ranges)
    what == What::everything ? choices.recompute_blocks(first, last)
                             : choices.recompute_cheap(first, last);
  recompute(graph, saved_actions(graph, choices.actions()));
}

SmallModel differentiated(const std::vector<BlockRange>& ranges, What what = What::everything) {
  SmallModel model = small_model(kShape);
  differentiate(model.graph, {});
  recompute(model.graph, ranges, what);
  return model;
}

std::unique_ptr<LoneRank> rank_of(const std::vector<BlockRange>& ranges,
                                  What what = What::everything) {
  SmallModel model = differentiated(ranges, what);
  return std::make_unique<LoneRank>(std::move(model.graph), model.loss, 5);
}

TEST(Recompute, OfNormsAndActivationsRepeatsNoProduct) {
  const auto kept = rank_of({});
  const auto cheap = rank_of(ranges_of(1), What::norms_and_activations);
  const auto all = rank_of(ranges_of(1));
  int repeated = 0;
  for (const Instruction& in : cheap->program().instructions) {
    if (!in.label.ends_with(".again")) continue;
    ++repeated;
    EXPECT_TRUE(in.operation->name == "norm" || in.operation->name == "gelu") << in.label;
  }
  EXPECT_EQ(repeated, 2 * kLayers);
  const std::int64_t rows = kShape.batch * kShape.sequence;
  // Each layer except the current one keeps neither the result of gelu nor that of its norm.
  const std::int64_t spared = (kLayers - 1) * rows * (kShape.width + kShape.hidden) * 4;
  EXPECT_LE(cheap->program().live_bytes[0], kept->program().live_bytes[0] - spared);
  EXPECT_GT(cheap->program().live_bytes[0], all->program().live_bytes[0]);
}

class RecomputeBits : public testing::TestWithParam<What> {};
INSTANTIATE_TEST_SUITE_P(What, RecomputeBits,
                         testing::Values(What::everything, What::norms_and_activations));

TEST_P(RecomputeBits, AreTheSame) {
  const auto kept = rank_of({});
  const double loss = kept->run();
  for (int layers_each : {1, 2, 4, 8}) {
    const auto again = rank_of(ranges_of(layers_each), GetParam());
    EXPECT_EQ(again->run(), loss);
    for (const ParameterUnit& unit : kept->units()) {
      const auto a = kept->storage<std::uint32_t>("d " + parameter_name(unit.name));
      const auto b = again->storage<std::uint32_t>("d " + parameter_name(unit.name));
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()))
          << unit.name << ", ranges of " << layers_each;
    }
  }
}

TEST(Recompute, LowersTheArenaByWhatIsNoLongerKept) {
  const auto live = [](const std::vector<BlockRange>& ranges) {
    return rank_of(ranges)->program().live_bytes[0];
  };
  const std::int64_t rows = kShape.batch * kShape.sequence;
  const std::int64_t inner = 2 * rows * kShape.width * 4;  // the bytes that gelu reads and writes
  const std::int64_t whole = live({});
  // The layer that is repeated and the one below it need theirs; the others keep none.
  EXPECT_LE(live(ranges_of(1)), whole - (kLayers - 2) * inner);
  EXPECT_LE(live(ranges_of(2)), whole - (kLayers - 3) * inner);
  EXPECT_LT(live(ranges_of(1)), live(ranges_of(4)));
  EXPECT_LT(live(ranges_of(4)), whole);
}

TEST(Recompute, TheArenaFollowsTheLiveSet) {
  for (int layers_each : {1, 2, 4, 8}) {
    const auto rank = rank_of(ranges_of(layers_each));
    const Program& program = rank->program();
    EXPECT_LE(static_cast<double>(program.arena_bytes[0] - program.persistent_bytes[0]),
              1.05 * static_cast<double>(program.live_bytes[0]));
    EXPECT_EQ(verify(program), std::vector<std::string>{});
  }
}

TEST(Recompute, BackwardReadsNothingThatTheForwardPassOfARangeKept) {
  const SmallModel model = differentiated(ranges_of(2));
  const Graph& graph = model.graph;
  for (const auto& [first, last] : ranges_of(2)) {
    std::set<ValueId> made, leaving;
    const auto inside = [first = first, last = last](const Node& node) {
      return node.block >= first && node.block <= last;
    };
    for (const Node& node : graph.nodes)
      if (inside(node) && node.pass == Pass::forward)
        for (ValueId out : node.outputs) made.insert(graph.root_of(out));
    for (const Node& node : graph.nodes)
      if (!inside(node))
        for (ValueId in : node.inputs) leaving.insert(graph.root_of(in));
    for (const Node& node : graph.nodes)
      if (inside(node) && node.pass == Pass::backward)
        for (ValueId in : node.inputs) {
          const ValueId root = graph.root_of(in);
          EXPECT_TRUE(made.count(root) == 0 || leaving.count(root) != 0)
              << node.label << " reads " << graph.values[root].name;
        }
  }
}

TEST(Recompute, RepeatsOnlyWhatBackwardReads) {
  const SmallModel model = differentiated(ranges_of(1));
  int repeated = 0;
  for (const Node& node : model.graph.nodes)
    if (node.label.ends_with(".again")) {
      ++repeated;
      EXPECT_EQ(node.pass, Pass::backward);
      EXPECT_NE(node.operation->name, "residual_add") << "its result leaves the layer";
    }
  EXPECT_EQ(repeated, kLayers * 3);  // norm, linear, gelu
}

const kernels::Operation kStep{.name = "step", .infer = nullptr, .cost = kernels::memory_cost};

/// A graph of blocks 0 to 2: block 0 makes x; block 1, made again, makes a from x and b from a;
/// block 2 reads b. In the backward pass block 1 reads a, which is recomputed from x.
struct InPlace {
  Graph graph;
  ValueId x = add("x"), a = add("a"), b = add("b"), result = add("result");

  InPlace() {
    graph.blocks = {"before", "again", "after"};
    node("make x", 0, {}, {x});
    node("make a", 1, {x}, {a});
    node("make b", 1, {a}, {b});
    node("read b", 2, {b}, {result});
  }
  ValueId add(const char* name) {
    Value value;
    value.name = name;
    value.type = {DType::f32, kernels::Shape{16}};
    return graph.add_value(value);
  }
  void node(const char* label, int block, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
            Pass pass = Pass::forward) {
    Node node;
    node.operation = &kStep;
    node.label = label;
    node.block = block;
    node.pass = pass;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    graph.nodes.push_back(std::move(node));
  }
  void overwrite(ValueId value, int block) {
    node("overwrite", block, {value}, {graph.next_version(value)});
  }
  /// Adds the backward pass to the graph and recomputes.
  void recompute_range() {
    node("d a", 1, {a}, {add("d a")}, Pass::backward);
    recompute(graph, std::vector<BlockRange>{{1, 1}});
  }
};

/// Returns the error of recompute_range(), or "" if there is none.
std::string refusal(InPlace& g) {
  try {
    g.recompute_range();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Recompute, LeavesWhatIsOverwrittenAndNotReadAgain) {
  InPlace g;
  g.overwrite(g.b, 2);
  g.recompute_range();
  EXPECT_EQ(g.graph.nodes.back().inputs, std::vector<ValueId>{g.graph.nodes[5].outputs[0]});
  EXPECT_EQ(g.graph.nodes[5].label, "make a.again");
}

TEST(Recompute, RefusesWhenWhatEntersARangeIsOverwrittenAfterIt) {
  InPlace g;
  g.overwrite(g.x, 2);
  EXPECT_THAT(
      refusal(g),
      HasSubstr("'make a.again' reads version 0 of 'x', which was overwritten before: 'overwrite' "
                "left version 1"));
}

TEST(Recompute, RefusesWhenWhatEntersARangeIsOverwrittenInIt) {
  InPlace g;
  g.overwrite(g.x, 1);
  EXPECT_THAT(
      refusal(g),
      HasSubstr("'make a.again' reads version 0 of 'x', which was overwritten before: 'overwrite' "
                "left version 1"));
}

TEST(Recompute, RefusesWhenWhatARangeRepeatsIsOverwrittenAfterIt) {
  InPlace g;
  g.overwrite(g.a, 2);
  EXPECT_THAT(
      refusal(g),
      HasSubstr("'d a' reads version 0 of 'a', which was overwritten before: 'overwrite' left"));
}

TEST(Recompute, WithoutRangesChangesNothing) {
  SmallModel model = small_model(kShape);
  differentiate(model.graph, {});
  const std::string before = model.graph.to_string();
  recompute(model.graph, std::vector<BlockRange>{});
  EXPECT_EQ(model.graph.to_string(), before);
}

}  // namespace
}  // namespace strata::runtime
