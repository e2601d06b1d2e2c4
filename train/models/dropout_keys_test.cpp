// Checks that each dropout of a model has its own random numbers, the same in both passes.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "runtime/passes/autodiff.h"
#include "train/models/transformer.h"

namespace strata::train {
namespace {

ModelConfig three_layers() {
  ModelConfig model;
  model.family = find_family("gpt2");
  model.vocabulary = 100;
  model.layers = 3;
  model.hidden = 32;
  model.heads = model.kv_heads = 4;
  model.head_size = 8;
  model.intermediate = 128;
  model.context = 32;
  model.tied_embeddings = true;
  model.embedding_dropout = model.residual_dropout = model.attention_dropout = 0.1;
  return model;
}

/// Counts for each key the operations of the pass that use it.
std::map<std::int64_t, int> uses(const runtime::Graph& graph, runtime::Pass pass) {
  std::map<std::int64_t, int> result;
  for (const runtime::Node& node : graph.nodes)
    if (node.pass == pass && node.attributes.has("p")) ++result[node.attributes.integer("key")];
  return result;
}

TEST(DropoutKeys, DifferInEveryDropoutOfTheModel) {
  runtime::Graph graph =
      build_model(three_layers(), {.batch = 2, .sequence = 8}, ModelUse::train).graph;
  std::map<std::int64_t, int> once;
  for (std::int64_t key = 0; key < 1 + 3 * 3; ++key) once[key] = 1;  // embedding, 3 of each layer
  EXPECT_EQ(uses(graph, runtime::Pass::forward), once);
  runtime::differentiate(graph, {DType::f32});
  EXPECT_EQ(uses(graph, runtime::Pass::forward), once);
  const std::map<std::int64_t, int> backward = uses(graph, runtime::Pass::backward);
  for (const auto& [key, count] : once) EXPECT_TRUE(backward.contains(key)) << key;
  EXPECT_EQ(backward.size(), once.size());
}

TEST(DropoutKeys, AreNoneWhereNothingIsDropped) {
  for (const ModelUse use : {ModelUse::evaluate, ModelUse::generate})
    EXPECT_TRUE(uses(build_model(three_layers(), {.batch = 2, .sequence = 8}, use).graph,
                     runtime::Pass::forward)
                    .empty());
}

}  // namespace
}  // namespace strata::train
