#include "runtime/passes/saved_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

#include "core/error.h"
#include "runtime/graph/graph_builder.h"
#include "runtime/passes/autodiff.h"
#include "runtime/testing/small_model.h"

namespace strata::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SmallModel differentiated() {
  SmallModel model = small_model();
  differentiate(model.graph, {});
  return model;
}

std::vector<std::string> names(const Graph& graph, int block) {
  std::vector<std::string> found;
  for (const SavedValue& value : list_saved_values(graph))
    if (value.block == block) found.push_back(value.name);
  return found;
}

TEST(SavedValues, AreWhatTheBackwardPassOrAnotherBlockReads) {
  const SmallModel model = differentiated();
  EXPECT_THAT(names(model.graph, 1),
              ElementsAre("0.norm", "0.norm.1", "1.linear", "2.gelu", "4.residual_add"))
      << "not 3.linear, of which only the sum is read";
  for (const SavedValue& value : list_saved_values(model.graph))
    if (value.name == "4.residual_add" && value.block == 1) {
      EXPECT_FALSE(value.is_used_by(1, 1));
      EXPECT_TRUE(value.is_used_by(1, 2));
      EXPECT_TRUE(value.can_leave);
      EXPECT_EQ(value.bytes, 2 * 8 * 32 * 4);
    }
}

TEST(SavedValues, OfOneNameInABlockAreNumbered) {
  SmallModel model = small_model({.layers = 1});
  for (Value& value : model.graph.values)
    if (value.name == "layer.0.2.gelu") value.name = "layer.0.1.linear";
  differentiate(model.graph, {});
  EXPECT_THAT(names(model.graph, 1),
              ElementsAre("0.norm", "0.norm.1", "1.linear", "1.linear #2", "4.residual_add"));
}

TEST(SavedChoices, JoinEqualBlocksAndLeaveGaps) {
  const SmallModel model = differentiated();
  SavedChoices choices(model.graph);
  choices.recompute_blocks(1, 1);
  choices.recompute_blocks(2, 2);
  choices.send(3, 3, SavedAction::host, 2 * 8 * 64 * 4);
  const std::vector<BlockActions> actions = choices.actions();
  ASSERT_EQ(actions.size(), 4u) << "embedding, two equal layers, one of its own, head";
  EXPECT_EQ(actions[1].first_block, 1);
  EXPECT_EQ(actions[1].last_block, 2);
  EXPECT_EQ(actions[1].actions.back(),
            (std::pair<std::string, SavedAction>("4.residual_add", SavedAction::keep)));
  for (const auto& [name, action] : actions[2].actions)
    EXPECT_EQ(action,
              name == "1.linear" || name == "2.gelu" ? SavedAction::host : SavedAction::keep)
        << name << ": the others are smaller";
}

/// Returns "1:norm 1:2.gelu ": block and name of each recomputed value.
std::string made_again(const Graph& graph, double part) {
  SavedChoices choices(graph);
  choices.recompute_part(1, 3, part);
  std::string text;
  for (const BlockActions& range : choices.actions())
    for (const auto& [name, action] : range.actions)
      if (action == SavedAction::recompute)
        for (int block = range.first_block; block <= range.last_block; ++block)
          text += std::to_string(block) + ":" + name + " ";
  return text;
}

TEST(SavedChoices, MakeFirstAgainWhatFreesMostForItsWork) {
  const SmallModel model = differentiated();
  EXPECT_EQ(made_again(model.graph, 0), "");
  EXPECT_EQ(made_again(model.graph, 1e-6), "1:0.norm 1:0.norm.1 ")
      << "all that one operation makes, of the layer whose values wait longest";
  EXPECT_EQ(made_again(model.graph, 0.4),
            "1:0.norm 2:0.norm 1:0.norm.1 2:0.norm.1 1:2.gelu 2:2.gelu 3:0.norm 3:0.norm.1 ");
  SavedChoices blocks(model.graph);
  for (const int block : {1, 2, 3}) blocks.recompute_blocks(block, block);
  SavedChoices all(model.graph);
  all.recompute_part(1, 3, 1);
  EXPECT_EQ(all.actions(), blocks.actions());
}

TEST(SavedChoices, EqualLayersRecomputeTheSameWithPartsByPrice) {
  const SmallModel model = differentiated();
  const std::vector<std::int64_t> freed = SavedChoices(model.graph).freed_by_price(1, 3);
  ASSERT_EQ(freed.size(), 3u) << "norm, gelu, linear";
  const auto part = [&](std::size_t i) {
    return static_cast<double>(freed[i]) / static_cast<double>(freed.back());
  };
  EXPECT_EQ(made_again(model.graph, part(0) * (1 - 1e-9)), made_again(model.graph, part(0)));
  for (std::size_t i = 0; i < freed.size(); ++i) {
    std::map<std::string, int> layers;  // by value
    std::istringstream words(made_again(model.graph, part(i) * (1 - 1e-9)));
    for (std::string word; words >> word;) ++layers[word.substr(word.find(':'))];
    EXPECT_FALSE(layers.empty());
    for (const auto& [name, count] : layers) EXPECT_EQ(count, 3) << name << " of part " << part(i);
  }
}

/// Makes a layer with q, k and v in one product, two of which rope changes.
Graph with_rope() {
  GraphBuilder b(DType::f32, 1, 8);
  b.begin_block("layer.0");
  const ValueId table = b.padded_matrix("table", 16, 16, 16, {0.1, 0});
  const Affine qkv{b.matrix({{"qkv", 48}}, 16, {0.1, 0}), kNoValue};
  const ValueId angles = b.rope_table({{"head_size", 8}, {"theta", 10000}});
  Heads heads = b.split_heads(b.linear(b.embedding(table, kNoValue), qkv), 2, 2, 8);
  heads.q = b.rope_in_place(heads.q, angles);
  heads.k = b.rope_in_place(heads.k, angles);
  b.head_loss(b.attention(heads, 1, 0), table, 16);
  Graph graph = b.finish();
  differentiate(graph, {});
  return graph;
}

TEST(SavedActions, RefuseToSendAwayWhatHasPartsOfSeveralVersions) {
  const Graph graph = with_rope();
  const auto refusal = [&](const std::string& name, SavedAction action) -> std::string {
    try {
      (void)saved_actions(graph, {{0, 0, {{name, action}}}});
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("2.linear", SavedAction::host),
              HasSubstr("the Plan sends '2.linear' of block 'layer.0' to the host, and it cannot "
                        "leave the device as a whole"));
  EXPECT_EQ(refusal("2.linear", SavedAction::recompute), "accepted");
  EXPECT_THAT(refusal("9.magic", SavedAction::keep), HasSubstr("does not save; it saves "));
}

/// Naming them lets one Plan be reused with frozen units, without other changes.
TEST(SavedValues, OfFrozenLayersMayBeNamedAllTheSame) {
  const std::vector<BlockActions> of_all = SavedChoices(differentiated().graph).actions();
  SmallModel frozen = small_model();
  std::vector<bool> units;
  for (const ParameterUnit& unit : frozen.graph.units) units.push_back(unit.block <= 1);
  differentiate(frozen.graph, {.frozen = units});
  EXPECT_THAT(names(frozen.graph, 1), ElementsAre("4.residual_add")) << "the next layer reads it";
  const auto actions = saved_actions(frozen.graph, of_all);
  EXPECT_EQ(actions.size(), list_saved_values(frozen.graph).size());
}

}  // namespace
}  // namespace strata::runtime
