#include <gtest/gtest.h>

#include "runtime/graph/collective_node.h"
#include "runtime/passes/autodiff.h"
#include "runtime/passes/infer_distributions.h"
#include "runtime/testing/small_model.h"

namespace strata::runtime {
namespace {

using comm::CollectiveKind;
using comm::MeshAxis;
using kernels::Shape;
using kernels::sharded;
using kernels::Spread;

constexpr Spread kWhole = kernels::kReplicated, kSum = kernels::kPartialSum;

Value persistent(std::string name, Shape shape, Distribution distribution) {
  Value value;
  value.name = std::move(name);
  value.type = {DType::f32, shape};
  value.storage = Storage::persistent;
  value.distribution = distribution;
  return value;
}

Distribution over_tensor(Spread spread) {
  Distribution distribution;
  distribution.along(MeshAxis::tensor) = spread;
  return distribution;
}

comm::Mesh two_by_two() {
  comm::Mesh mesh = comm::data_mesh(2);
  mesh.sizes[static_cast<std::size_t>(MeshAxis::tensor)] = 2;
  return mesh;
}

/// A Graph of one block, to which values and operations are added by name.
struct Sketch {
  Graph graph;

  Sketch() { graph.blocks = {"only"}; }
  ValueId found(std::string name, Shape shape, Distribution distribution) {
    return graph.add_value(persistent(std::move(name), shape, distribution));
  }
  ValueId apply(std::string_view operation, std::vector<ValueId> inputs, std::string label,
                kernels::Attributes attributes = {}) {
    return graph
        .apply(operation, std::move(inputs), std::move(attributes), 0, Pass::forward,
               std::move(label))
        .front();
  }
  ValueId collect(CollectiveKind kind, ValueId input, Shape shape, std::string label,
                  MeshAxis axis = MeshAxis::data) {
    Value value;
    value.name = label;
    value.type = {DType::f32, shape};
    const ValueId output = graph.add_value(std::move(value));
    comm::Collective collective;
    collective.kind = kind;
    collective.axes = axis;
    graph.nodes.push_back(
        collective_node(collective, input, output, 0, Pass::forward, std::move(label)));
    return output;
  }
  std::string infer() { return infer_distributions(graph, two_by_two()); }
  [[nodiscard]] std::string of(ValueId id) const {
    return to_string(graph.values[static_cast<std::size_t>(id)].distribution);
  }
};

TEST(Distribution, FollowsRowsThroughAModelAndItsGradients) {
  SmallModelShape shape{.layers = 1, .dropout = 0.1};
  SmallModel model = small_model(shape);
  differentiate(model.graph, {});
  ASSERT_EQ(infer_distributions(model.graph, comm::data_mesh(2)), "");
  std::string lines;
  for (const Node& node : model.graph.nodes) {
    if (node.operation->name == "fill_zero") continue;  // gaps
    lines += std::string(node.operation->name) + ":";
    for (ValueId out : node.outputs)
      lines += to_string(model.graph.values[static_cast<std::size_t>(out)].distribution);
    lines += "\n";
  }
  EXPECT_EQ(lines,
            "embedding: sharded(0, data)\n"
            "dropout: sharded(0, data)\n"
            "norm: sharded(0, data) sharded(0, data)\n"
            "linear: sharded(0, data)\n"
            "gelu: sharded(0, data)\n"
            "linear: sharded(0, data)\n"
            "residual_add: sharded(0, data)\n"
            "norm: sharded(0, data) sharded(0, data)\n"
            "gradient_scale:\n"
            "head_loss: partial_sum(data) sharded(0, data) partial_sum(data)\n"
            "norm_backward: sharded(0, data) partial_sum(data)\n"
            "dropout: sharded(0, data)\n"
            "linear_backward_input: sharded(0, data)\n"
            "linear_backward_weight: partial_sum(data)\n"
            "gelu_backward: sharded(0, data)\n"
            "linear_backward_input: sharded(0, data)\n"
            "linear_backward_weight: partial_sum(data)\n"
            "linear_backward_bias: partial_sum(data)\n"
            "norm_backward: sharded(0, data) partial_sum(data) partial_sum(data)\n"
            "add: sharded(0, data)\n"
            "dropout: sharded(0, data)\n"
            "embedding_backward: partial_sum(data)\n");
}

TEST(Distribution, OfOneRankIsReplicatedWhateverWasDeclared) {
  SmallModel model = small_model();
  EXPECT_NE(model.graph.to_string().find("tokens:int32[16] sharded(0, data)"), std::string::npos)
      << model.graph.to_string();
  EXPECT_EQ(infer_distributions(model.graph, comm::data_mesh(1)), "");
  EXPECT_EQ(model.graph.to_string().find("(data)"), std::string::npos);
  EXPECT_EQ(model.graph.to_string().find(", data)"), std::string::npos);
}

TEST(Distribution, OfAProductFollowsWhatIsCut) {
  Sketch s;
  const ValueId rows = s.found("rows", {4, 8}, over_data(sharded(0)));
  const ValueId by_outputs = s.found("by outputs", {6, 8}, over_tensor(sharded(0)));
  const ValueId by_inputs = s.found("by inputs", {8, 6}, over_tensor(sharded(1)));
  const ValueId turned = s.found("turned", {6, 8}, over_tensor(sharded(0)));
  const ValueId wide = s.apply("linear", {rows, by_outputs}, "wide");
  const ValueId narrow = s.apply("linear", {wide, by_inputs}, "narrow");
  const ValueId again = s.apply("linear", {wide, turned}, "again", {{"transposed", 1}});
  const ValueId bias = s.apply("linear_backward_bias", {wide}, "bias");
  const ValueId weight = s.apply("linear_backward_weight", {wide, rows}, "weight");
  const ValueId input = s.apply("linear_backward_input", {wide, by_outputs}, "input");
  const ValueId summed =
      s.collect(CollectiveKind::all_reduce, narrow, {4, 8}, "summed", MeshAxis::tensor);
  ASSERT_EQ(s.infer(), "");
  EXPECT_EQ(s.of(wide), " sharded(0, data) sharded(1, tensor)");
  EXPECT_EQ(s.of(narrow), " sharded(0, data) partial_sum(tensor)");
  EXPECT_EQ(s.of(again), s.of(narrow));
  EXPECT_EQ(s.of(bias), " partial_sum(data) sharded(0, tensor)");
  EXPECT_EQ(s.of(weight), " partial_sum(data) sharded(0, tensor)");
  EXPECT_EQ(s.of(input), s.of(narrow));
  EXPECT_EQ(s.of(summed), " sharded(0, data)");
}

TEST(Distribution, StaysAPartialSumInLinearOperationsAlone) {
  Sketch s;
  const ValueId a = s.found("a", {8}, over_data(kSum)), b = s.found("b", {8}, over_data(kSum));
  const ValueId sum = s.apply("accumulate", {a, b}, "sum", {{"scale", 0.5}});
  const ValueId rounded =
      s.apply("convert", {sum}, "rounded", {{"dtype", static_cast<double>(DType::bf16)}});
  ASSERT_EQ(s.infer(), "");
  EXPECT_EQ(s.of(rounded), " partial_sum(data)");
  s.apply("add", {a, s.found("c", {8}, {})}, "mixed");
  EXPECT_EQ(s.infer(),
            "'mixed' (add) reads operand 1, 'c', as replicated(data) where it takes "
            "partial_sum(data)");
}

TEST(Distribution, ZerosAreWhateverTheirReaderTakesThemFor) {
  Sketch s;
  const ValueId whole = s.found("whole", {8}, {});
  const auto half = [&](std::int64_t begin) {
    return s.graph.add_view(s.graph.next_version(whole), begin * 4, {DType::f32, Shape{4}}, "half");
  };
  s.graph.apply_into("copy", {s.found("sum", {4}, over_data(kSum))}, {half(0)}, {}, 0,
                     Pass::forward, "copy");
  s.graph.apply_into("fill_zero", {}, {half(4)},
                     {{"rows", 4}, {"dtype", static_cast<double>(DType::f32)}}, 0, Pass::forward,
                     "gap");
  s.collect(CollectiveKind::reduce_scatter, s.graph.next_version(whole), {4}, "own");
  EXPECT_EQ(s.infer(), "");
}

TEST(Distribution, OfPartsThatDifferIsNamed) {
  Sketch s;
  const ValueId whole = s.found("whole", {8}, {});
  for (const Spread spread : {kSum, kWhole})
    s.graph.apply_into("copy", {s.found("part", {4}, over_data(spread))},
                       {s.graph.add_view(s.graph.next_version(whole), spread == kSum ? 0 : 16,
                                         {DType::f32, Shape{4}}, "half")},
                       {}, 0, Pass::forward, "copy");
  s.apply("copy", {s.graph.next_version(whole)}, "both");
  EXPECT_EQ(s.infer(),
            "'both' (copy) reads in one operand, 'whole v1', as partial_sum(data) where it takes "
            "replicated(data)");
}

TEST(Distribution, OfAPartOfWhatAllHaveIsAsDeclared) {
  Sketch s;
  const ValueId shard = s.found("shard", {4}, over_data(sharded(0)));
  const ValueId gathered = s.collect(CollectiveKind::all_gather, shard, {8}, "gathered");
  const ValueId own = s.graph.add_view(gathered, 16, {DType::f32, Shape{4}}, "own");
  s.graph.values[static_cast<std::size_t>(own)].distribution = over_data(sharded(0));
  const ValueId whole = s.apply("copy", {gathered}, "whole");
  const ValueId sum = s.apply("add", {own, shard}, "sum");
  ASSERT_EQ(s.infer(), "");
  EXPECT_EQ(s.of(whole), "");
  EXPECT_EQ(s.of(sum), " sharded(0, data)");
}

struct Mistake {
  const char* name;
  void (*plant)(Sketch&);
  const char* problem;
};

class PlantedMistake : public testing::TestWithParam<Mistake> {};

TEST_P(PlantedMistake, IsNamed) {
  Sketch s;
  GetParam().plant(s);
  EXPECT_EQ(s.infer(), GetParam().problem);
}

constexpr Mistake kMistakes[] = {
    {"GatherOfASum",
     [](Sketch& s) {
       s.collect(CollectiveKind::all_gather, s.found("sum", {4}, over_data(kSum)), {8}, "gather");
     },
     "'gather' (all_gather) reads operand 0, 'sum', as partial_sum(data) where it takes "
     "sharded(0, data)"},
    {"ReductionOfWhatAllHave",
     [](Sketch& s) {
       s.collect(CollectiveKind::reduce_scatter, s.found("mean", {8}, {}), {4}, "reduce");
     },
     "'reduce' (reduce_scatter) reads operand 0, 'mean', as replicated(data) where it takes "
     "partial_sum(data)"},
    {"ReductionOverAnotherAxis",
     [](Sketch& s) {
       s.collect(CollectiveKind::all_reduce, s.found("sum", {8}, over_data(kSum)), {8}, "reduce",
                 MeshAxis::tensor);
     },
     "'reduce' (all_reduce) reads operand 0, 'sum', as replicated(tensor) where it takes "
     "partial_sum(tensor)"},
    {"BroadcastOfASum",
     [](Sketch& s) {
       s.collect(CollectiveKind::broadcast, s.found("sum", {8}, over_data(kSum)), {8}, "send");
     },
     "'send' (broadcast) reads operand 0, 'sum', as partial_sum(data) where it takes "
     "replicated(data)"},
    {"ProductOfASum",
     [](Sketch& s) {
       s.apply("linear", {s.found("sum", {4, 8}, over_tensor(kSum)), s.found("weight", {6, 8}, {})},
               "y");
     },
     "'y' (linear) reads operand 0, 'sum', as partial_sum(tensor) where it takes "
     "replicated(tensor)"},
    {"BiasOfASumOnEveryRank",
     [](Sketch& s) {
       s.apply("linear",
               {s.found("x", {4, 8}, over_tensor(sharded(1))),
                s.found("weight", {6, 8}, over_tensor(sharded(1))), s.found("bias", {6}, {})},
               "y");
     },
     "'y' (linear) reads operand 2, 'bias', as replicated(tensor) where it takes "
     "partial_sum(tensor)"},
    {"NormOfCutRows",
     [](Sketch& s) {
       s.apply("norm", {s.found("x", {4, 8}, over_tensor(sharded(1))), s.found("weight", {8}, {})},
               "y", {{"eps", 1e-5}, {"rms", 1}});
     },
     "'y' (norm) reads operand 0, 'x', as sharded(1, tensor) where it takes replicated(tensor)"},
    {"ShardThatWasNotGathered",
     [](Sketch& s) {
       s.apply("linear",
               {s.found("x", {4, 8}, over_data(sharded(0))),
                s.found("weight", {6, 8}, over_data(sharded(0)))},
               "y");
     },
     "'y' (linear) reads operand 1, 'weight', as sharded(0, data) where it takes "
     "replicated(data)"},
    {"PredicateOfOneRank",
     [](Sketch& s) {
       s.apply("copy", {s.found("x", {4}, {})}, "y");
       s.graph.nodes.back().predicate = s.found("flag", {1}, over_data(sharded(0)));
     },
     "'y' (copy) reads its predicate, 'flag', as sharded(0, data) where it takes "
     "replicated(data)"},
};

INSTANTIATE_TEST_SUITE_P(Distribution, PlantedMistake, testing::ValuesIn(kMistakes),
                         [](const auto& mistake) { return std::string(mistake.param.name); });

}  // namespace
}  // namespace strata::runtime
