#include "runtime/graph/graph.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "runtime/graph/graph_builder.h"

namespace strata::runtime {
namespace {

ValueId add(Graph& graph, const char* name, std::int64_t elements) {
  Value value;
  value.name = name;
  value.type = kernels::TensorType(DType::f32, kernels::Shape{elements});
  return graph.add_value(value);
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Graph, RefusesTwoBlocksOfOneName) {
  GraphBuilder b(DType::f32, 1, 4);
  b.begin_block("layer.0");
  b.begin_block("layer.1");
  EXPECT_EQ(error_of([&] { b.begin_block("layer.0"); }),
            "the model has two blocks named 'layer.0'; give each block a name of its own");
}

TEST(Graph, RefusesTwoUnitsOfOneName) {
  Graph graph;
  graph.add_block("a");
  graph.add_block("b");
  ParameterUnit unit;
  unit.name = "a.matrices";
  EXPECT_EQ(graph.add_unit(unit, DType::f32), 0);
  unit.block = 1;
  EXPECT_EQ(error_of([&] { graph.add_unit(unit, DType::f32); }),
            "the model has two parameter units named 'a.matrices', of the blocks 'a' and 'b'; give "
            "each unit a name of its own");
  EXPECT_EQ(graph.units.size(), 1u);
  EXPECT_EQ(graph.unit_values.size(), 1u);
}

TEST(Graph, FindsPersistentRootsByName) {
  Graph graph;
  const ValueId a = add(graph, "a", 16);
  EXPECT_EQ(graph.find_persistent("a"), kNoValue);
  graph.make_persistent(a, "kept");
  EXPECT_EQ(graph.find_persistent("kept"), a);
  EXPECT_EQ(graph.find_persistent("a"), kNoValue);
  Value value;
  value.name = "b";
  value.type = kernels::TensorType(DType::f32, kernels::Shape{4});
  value.storage = Storage::persistent;
  const ValueId b = graph.add_value(value);
  graph.next_version(b);  // find_persistent ignores views
  EXPECT_EQ(graph.find_persistent("b"), b);
  EXPECT_EQ(Graph(graph).find_persistent("b"), b);
  graph.values[b].storage = Storage::transient;
  EXPECT_EQ(graph.find_persistent("b"), kNoValue);
  value.name = "b";
  const ValueId next = graph.add_value(value);
  EXPECT_EQ(graph.find_persistent("b"), next);
}

TEST(Graph, AViewIsOfTheVersionThatItIsTakenOf) {
  Graph graph;
  const ValueId a = add(graph, "a", 16);
  const ValueId next = graph.next_version(graph.next_version(a));
  const ValueId part = graph.add_view(next, 16, kernels::TensorType(DType::f32, {4}), "part");
  EXPECT_EQ(graph.values[next].version, 2);
  EXPECT_EQ(graph.root_of(next), a);
  EXPECT_EQ(graph.values[part].version, 2);
  EXPECT_EQ(describe(graph.values[part]), "part v2");
  EXPECT_EQ(describe(graph.values[a]), "a");
}

TEST(Graph, VersionsOfAValueMadePersistentStartAfterWhatIsThere) {
  Graph graph;
  const ValueId a = add(graph, "a", 16), b = add(graph, "b", 16);
  const ValueId next = graph.next_version(a);
  graph.make_persistent(a, "kept");
  EXPECT_EQ(graph.values[a].name, "kept");
  EXPECT_EQ(graph.values[a].version, 1);
  EXPECT_EQ(graph.values[next].version, 2);
  EXPECT_EQ(graph.values[next].storage, Storage::persistent);
  EXPECT_EQ(graph.values[b].version, 0);
  EXPECT_EQ(graph.values[b].storage, Storage::transient);
}

TEST(Graph, ViewsOverlapWhereTheyShareAnElement) {
  Graph graph;
  const ValueId packed = add(graph, "packed", 4 * 12);
  const auto view = [&](std::int64_t first_column, std::int64_t columns) {
    return graph.add_view(packed, first_column * 4,
                          kernels::TensorType(DType::f32, {4, columns}, 12), "view");
  };
  const ValueId q = view(0, 6), k = view(6, 3), v = view(9, 3), qk = view(4, 4);
  EXPECT_FALSE(overlap(graph, q, k));
  EXPECT_FALSE(overlap(graph, k, v));
  EXPECT_TRUE(overlap(graph, q, qk));
  EXPECT_TRUE(overlap(graph, k, qk));
  EXPECT_FALSE(overlap(graph, v, qk));
  EXPECT_TRUE(overlap(graph, packed, v));
  EXPECT_FALSE(overlap(graph, packed, add(graph, "other", 48)));
}

}  // namespace
}  // namespace strata::runtime
