// Checks which outputs may take the storage of an input.
#include <gtest/gtest.h>

#include "runtime/program/alias_in_place.h"

namespace strata::runtime {
namespace {

const kernels::Operation kMake{.name = "make", .infer = nullptr, .cost = nullptr};
const kernels::Operation kInPlace{
    .name = "in_place", .infer = nullptr, .cost = nullptr, .aliases = {{0, 0}}};
const kernels::Operation kBothInPlace{
    .name = "both_in_place", .infer = nullptr, .cost = nullptr, .aliases = {{0, 0}, {1, 0}}};

struct Values {
  Graph graph;
  ValueId add(const char* name) {
    Value value;
    value.name = name;
    value.type = {DType::f32, kernels::Shape{16}};
    return graph.add_value(value);
  }
  Node& node(const kernels::Operation& operation, std::vector<ValueId> inputs,
             std::vector<ValueId> outputs) {
    Node node;
    node.operation = &operation;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    graph.nodes.push_back(std::move(node));
    return graph.nodes.back();
  }
};

TEST(AliasInPlace, TakesTheStorageOfADeadInputAlongAChain) {
  Values v;
  const ValueId a = v.add("a"), b = v.add("b"), c = v.add("c");
  v.node(kMake, {}, {a});
  v.node(kInPlace, {a}, {b});
  v.node(kInPlace, {b}, {c});
  alias_in_place(v.graph);
  EXPECT_EQ(v.graph.root_of(b), a);
  EXPECT_EQ(v.graph.root_of(c), a);
  EXPECT_EQ(v.graph.values[a].version, 0);
  EXPECT_EQ(v.graph.values[b].version, 1);
  EXPECT_EQ(v.graph.values[c].version, 2);
}

TEST(AliasInPlace, CountsTheVersionsOfAnOutputFromThoseOfTheInput) {
  Values v;
  const ValueId a = v.add("a"), b = v.add("b");
  const ValueId after = v.graph.next_version(a), later = v.graph.next_version(b);
  v.node(kMake, {}, {a});
  v.node(kMake, {a}, {after});
  v.node(kInPlace, {after}, {b});
  v.node(kMake, {b}, {later});
  alias_in_place(v.graph);
  EXPECT_EQ(v.graph.root_of(later), a);
  EXPECT_EQ(v.graph.values[b].version, 2);
  EXPECT_EQ(v.graph.values[later].version, 3);
}

TEST(AliasInPlace, LeavesWhatALaterPredicateReads) {
  Values v;
  const ValueId a = v.add("a"), b = v.add("b"), c = v.add("c");
  v.node(kMake, {}, {a});
  v.node(kInPlace, {a}, {b});
  v.node(kMake, {b}, {c}).predicate = a;
  alias_in_place(v.graph);
  EXPECT_EQ(v.graph.root_of(b), b);
}

TEST(AliasInPlace, LeavesItsOwnPredicate) {
  Values v;
  const ValueId a = v.add("a"), b = v.add("b");
  v.node(kMake, {}, {a});
  v.node(kInPlace, {a}, {b}).predicate = a;
  alias_in_place(v.graph);
  EXPECT_EQ(v.graph.root_of(b), b);
}

TEST(AliasInPlace, LeavesARootThatItsNodeReadsTwice) {
  Values v;
  const ValueId a = v.add("a"), b = v.add("b"), c = v.add("c"), d = v.add("d");
  v.node(kMake, {}, {a});
  v.node(kInPlace, {a, a}, {b});
  v.node(kMake, {}, {c});
  const ValueId part = v.add("part of c");
  v.graph.values[part].root = c;
  v.node(kInPlace, {c, part}, {d});
  alias_in_place(v.graph);
  EXPECT_EQ(v.graph.root_of(b), b);
  EXPECT_EQ(v.graph.root_of(d), d);
}

TEST(AliasInPlace, GivesOneInputToOneOutput) {
  Values v;
  const ValueId a = v.add("a"), b = v.add("b"), c = v.add("c"), d = v.add("d");
  v.node(kMake, {}, {a});
  v.node(kBothInPlace, {a}, {b, c});
  v.node(kMake, {c}, {d});
  alias_in_place(v.graph);
  EXPECT_NE(v.graph.root_of(b), v.graph.root_of(c));
}

TEST(AliasInPlace, LeavesAnOutputThatHadContentBefore) {
  Values v;
  const ValueId a = v.add("a"), b = v.add("b");
  v.node(kMake, {}, {b});
  v.node(kMake, {}, {a});
  v.node(kInPlace, {a}, {b});
  alias_in_place(v.graph);
  EXPECT_EQ(v.graph.root_of(b), b);
}

/// Graph: start (persistent) -> copy -> add -> add; each add may take its first input's storage.
TEST(AliasInPlace, LeavesPersistentStorageAlone) {
  Graph graph;
  graph.blocks = {"block"};
  Value value;
  value.name = "start";
  value.type = kernels::TensorType(DType::f32, kernels::Shape{16});
  value.storage = Storage::persistent;
  const ValueId start = graph.add_value(value);
  const auto apply = [&](const char* operation, std::vector<ValueId> inputs) {
    return graph.apply(operation, std::move(inputs), {}, 0, Pass::forward, operation).front();
  };
  const ValueId a = apply("copy", {start});
  const ValueId b = apply("add", {a, start});  // a is read again below
  const ValueId c = apply("add", {b, a});      // b is not read again
  const ValueId d = apply("add", {start, c});  // persistent storage is never taken
  alias_in_place(graph);
  EXPECT_EQ(graph.root_of(b), b);
  EXPECT_EQ(graph.root_of(c), b);
  EXPECT_EQ(graph.root_of(d), d);
}

}  // namespace
}  // namespace strata::runtime
