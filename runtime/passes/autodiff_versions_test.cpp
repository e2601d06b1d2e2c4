// Tests gradients of values that are overwritten in place (rotary embedding) or seen through views.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.h"
#include "runtime/graph/graph_builder.h"
#include "runtime/passes/autodiff.h"
#include "runtime/passes/stale_read.h"

namespace strata::runtime {
namespace {

constexpr std::int64_t kHeads = 2, kHeadSize = 8, kHidden = 16, kVocabulary = 128;

/// Makes one attention layer. If `normed`, queries are normalized per head first, as in Qwen3, so
/// that the rotation overwrites a whole value and not a part of the packed product.
Graph attention_layer(bool normed, DType dtype = DType::f32, DType produced = DType::f32) {
  GraphBuilder b(dtype, 1, 4);
  b.begin_block("layer");
  const ValueId tokens = b.matrix({{"tokens", kVocabulary}}, kHidden, {});
  const ValueId qkv = b.matrix({{"qkv", 3 * kHeads * kHeadSize}}, kHidden, {});
  const ValueId weight = b.vector({{"norm", kHeadSize}}, {});
  Heads heads =
      b.split_heads(b.linear(b.embedding(tokens, kNoValue), {qkv}), kHeads, kHeads, kHeadSize);
  if (normed) heads.q = b.norm(heads.q, {weight}, 1e-5, true);
  const ValueId table = b.rope_table({{"head_size", kHeadSize}, {"theta", 10000}});
  heads.q = b.rope_in_place(heads.q, table);
  heads.k = b.rope_in_place(heads.k, table);
  b.head_loss(b.linear(b.attention(heads, 1, 0), {b.matrix({{"out", kHidden}}, kHidden, {})}),
              tokens, kVocabulary);
  Graph graph = b.finish();
  differentiate(graph, {produced});
  return graph;
}

std::int64_t count(const Graph& graph, std::string_view operation) {
  return std::ranges::count_if(graph.nodes,
                               [&](const Node& node) { return node.operation->name == operation; });
}

TEST(AutodiffOfVersions, RotatesTheGradientBackAndAddsNothingToIt) {
  for (const bool normed : {false, true}) {
    const Graph graph = attention_layer(normed);
    EXPECT_EQ(count(graph, "rope"), 4) << normed;
    EXPECT_EQ(count(graph, "add"), 0) << graph.to_string();
  }
}

TEST(AutodiffOfVersions, GivesTheNormTheGradientThatWasRotatedBack) {
  const Graph graph = attention_layer(true);
  const auto norm = std::ranges::find_if(
      graph.nodes, [](const Node& node) { return node.operation->name == "norm_backward"; });
  ASSERT_NE(norm, graph.nodes.end());
  const auto writer = std::ranges::find_if(graph.nodes, [&](const Node& node) {
    return std::ranges::find(node.outputs, norm->inputs[0]) != node.outputs.end();
  });
  ASSERT_NE(writer, graph.nodes.end());
  EXPECT_EQ(writer->operation->name, "rope");
}

/// Returns, by name, the version of a unit's gradient that the first writer of each part leaves.
std::map<std::string, std::int32_t> first_versions(const Graph& graph, ValueId gradient) {
  std::map<std::string, std::int32_t> first;
  for (const Node& node : graph.nodes)
    for (ValueId out : node.outputs)
      if (graph.root_of(out) == graph.root_of(gradient))
        first.try_emplace(graph.values[out].name, graph.values[out].version);
  return first;
}

TEST(AutodiffOfVersions, EndsAUnitsGradientWithOneVersion) {
  const Graph graph = attention_layer(false);
  const ValueId gradient = graph.unit_gradients[0];
  EXPECT_EQ(graph.values[gradient].version,
            1);  // the table is written by the head and by the input
  EXPECT_EQ(first_versions(graph, gradient),
            (std::map<std::string, std::int32_t>{{"d tokens", 0}, {"d qkv", 1}, {"d out", 1}}));
  EXPECT_EQ(find_stale_read(graph), "");
}

TEST(AutodiffOfVersions, NamesTheReaderOfAnOldVersion) {
  Graph graph = attention_layer(false);
  const auto attention = std::ranges::find_if(
      graph.nodes, [](const Node& node) { return node.operation->name == "attention"; });
  ASSERT_NE(attention, graph.nodes.end());
  const auto rope = std::ranges::find_if(
      graph.nodes, [](const Node& node) { return node.operation->name == "rope"; });
  const ValueId rotated = std::exchange(attention->inputs[0], rope->inputs[0]);
  EXPECT_EQ(find_stale_read(graph),
            "'" + attention->label + "' reads version 0 of '" + graph.values[rotated].name +
                "', which was overwritten before: '" + rope->label + "' left version 1");
  attention->inputs[0] = graph.next_version(rotated);
  EXPECT_EQ(find_stale_read(graph), "'" + attention->label + "' reads version 2 of '" +
                                        graph.values[rotated].name +
                                        "', which nobody wrote before");
}

/// Makes a table that two heads and a product read. `head_first`: a head is the first of them.
/// `whole`: heads read values; else views, as attention returns them.
Graph shared_table(DType dtype, bool head_first, bool whole) {
  GraphBuilder b(dtype, 1, 4);
  b.begin_block("layer");
  const ValueId tokens = b.matrix({{"tokens", kVocabulary}}, kHidden, {});
  const ValueId qkv = b.matrix({{"qkv", 3 * kHeads * kHeadSize}}, kHidden, {});
  const ValueId back = b.matrix({{"back", kHidden}}, kVocabulary, {});
  const auto attend = [&](ValueId x) {
    return b.attention(b.split_heads(b.linear(x, {qkv}), kHeads, kHeads, kHeadSize), 1, 0);
  };
  const ValueId weight = b.vector({{"norm", kHidden}}, {});
  const auto head = [&](ValueId x) {
    b.head_loss(whole ? b.norm(x, {weight}, 1e-5, true) : x, tokens, kVocabulary);
  };
  const auto product = [&](ValueId x) { return b.linear(b.linear(x, {tokens}), {back}); };
  ValueId x = attend(b.embedding(tokens, kNoValue));
  if (head_first) {
    head(x);
    head(attend(product(x)));
  } else {
    x = attend(product(x));
    head(x);
    head(attend(x));
  }
  return b.finish();
}

TEST(AutodiffOfVersions, TakesViewsOfEveryType) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const DType produced : {DType::f32, DType::bf16, DType::f16})
      for (const bool normed : {false, true})
        EXPECT_EQ(find_stale_read(attention_layer(normed, dtype, produced)), "");
}

TEST(AutodiffOfVersions, AddsWhatForwardOperationsGiveInEveryType) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const DType produced : {DType::f32, DType::bf16, DType::f16})
      for (const bool head_first : {false, true})
        for (const bool whole : {false, true}) {
          Graph graph = shared_table(dtype, head_first, whole);
          differentiate(graph, {produced});
          EXPECT_EQ(find_stale_read(graph), "");
          EXPECT_EQ(graph.type(graph.unit_gradients[0]).dtype, produced);
        }
}

TEST(AutodiffOfVersions, RefusesAnOperationWithoutARuleBetweenParametersAndLoss) {
  GraphBuilder b(DType::f32, 1, 4);
  b.begin_block("layer");
  const ValueId tokens = b.matrix({{"tokens", kVocabulary}}, kHidden, {});
  const ValueId rows = b.input("rows", {DType::i32, kernels::Shape{4}});
  b.head_loss(b.select_rows(b.embedding(tokens, kNoValue), rows), tokens, kVocabulary);
  Graph graph = b.finish();
  try {
    differentiate(graph, {});
    FAIL() << graph.to_string();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "'layer.1.select_rows' stands between parameters and loss, and operation "
                 "select_rows has no gradient rule");
  }
}

TEST(AutodiffOfVersionsDeath, RefusesToReadWhatWasOverwritten) {
  EXPECT_DEATH(
      {
        GraphBuilder b(DType::f32, 1, 4);
        b.begin_block("layer");
        const ValueId tokens = b.matrix({{"tokens", kVocabulary}}, kHidden, {});
        const ValueId product = b.matrix({{"qkv", 3 * kHidden}}, kHidden, {});
        Heads heads = b.split_heads(b.linear(b.embedding(tokens, kNoValue), {product}), kHeads,
                                    kHeads, kHeadSize);
        const ValueId before = heads.q;
        heads.q =
            b.rope_in_place(before, b.rope_table({{"head_size", kHeadSize}, {"theta", 10000}}));
        heads.k = before;
        b.head_loss(b.linear(b.attention(heads, 1, 0), {b.matrix({{"out", kHidden}}, kHidden, {})}),
                    tokens, kVocabulary);
        Graph graph = b.finish();
        differentiate(graph, {});
      },
      "was overwritten before");
}

TEST(AutodiffOfVersionsDeath, RefusesTwoGradientsInOnePlace) {
  EXPECT_DEATH(
      {
        GraphBuilder b(DType::f32, 1, 4);
        b.begin_block("layer");
        const ValueId tokens = b.matrix({{"tokens", kVocabulary}}, kHidden, {});
        const ValueId product = b.matrix({{"qkv", 3 * kHidden}}, kHidden, {});
        const ValueId packed = b.linear(b.embedding(tokens, kNoValue), {product});
        Heads heads = b.split_heads(packed, kHeads, kHeads, kHeadSize);
        heads.k =
            b.split_heads(packed, kHeads, kHeads, kHeadSize).q;  // the same bytes, another view
        b.head_loss(b.linear(b.attention(heads, 1, 0), {b.matrix({{"out", kHidden}}, kHidden, {})}),
                    tokens, kVocabulary);
        Graph graph = b.finish();
        differentiate(graph, {});
      },
      "two gradients in one place");
}

}  // namespace
}  // namespace strata::runtime
