#include "plan/saved_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/testing/small_training.h"
#include "runtime/passes/autodiff.h"
#include "runtime/program/arena_alignment.h"

namespace strata::plan {
namespace {

using runtime::SavedAction;
using testing::Each;

constexpr auto kKeep = SavedAction::keep, kAgain = SavedAction::recompute,
               kHost = SavedAction::host;

class SavedLayers : public testing::Test {
 protected:
  SavedLayers() {
    runtime::BatchShape shape{DType::f32, 8, 64};
    graph_ = small_training(4).build(shape, compile::ModelUse::train).graph;
    runtime::differentiate(graph_, {});
    values_ = runtime::list_saved_values(graph_);
    layers_ = list_saved_layers(graph_, values_, 1);
  }

  runtime::Graph graph_;
  std::vector<runtime::SavedValue> values_;
  std::vector<SavedLayer> layers_;
};

TEST_F(SavedLayers, HaveAllThatTheirBlocksMakeOnceAndTheirInput) {
  ASSERT_EQ(layers_.size(), 4u);
  std::set<runtime::ValueId> seen;
  for (const SavedLayer& layer : layers_) {
    EXPECT_TRUE(graph_.blocks[static_cast<std::size_t>(layer.block)].starts_with("layer."));
    EXPECT_EQ(std::ranges::count_if(layer.groups, &SavedGroup::is_input), 1);
    for (const SavedGroup& group : layer.groups)
      for (const runtime::ValueId root : group.roots) EXPECT_TRUE(seen.insert(root).second);
  }
  for (const runtime::SavedValue& value : values_) {
    const bool own = value.block > 0 && value.block < 5 && value.last_user_block == value.block;
    if (own) {
      EXPECT_TRUE(seen.contains(value.root)) << value.name;
    }
  }
}

TEST_F(SavedLayers, AreAlikeWhateverMadeTheirInput) {
  for (const SavedLayer& layer : layers_) EXPECT_TRUE(layer.is_like(layers_.front()));
  SavedLayer other = layers_.front();
  other.groups.back().bytes += 64;
  EXPECT_FALSE(other.is_like(layers_.front()));
}

TEST_F(SavedLayers, HaveGroupsThatCanBeRemadeFirstAndTheCheapestOfThemFirst) {
  const std::vector<SavedGroup>& groups = layers_[1].groups;
  EXPECT_TRUE(groups.front().can_be_remade);
  EXPECT_TRUE(groups.back().is_input);
  for (std::size_t g = 1; g < groups.size(); ++g) {
    EXPECT_LE(groups[g].can_be_remade, groups[g - 1].can_be_remade);
    if (groups[g].can_be_remade) {
      EXPECT_GE(groups[g].price, groups[g - 1].price);
    }
  }
}

TEST_F(SavedLayers, AreRemadeGroupByGroup) {
  const SavedLayer& layer = layers_[1];
  const std::vector<SavedWay> ways = ways_to_remake(layer);
  EXPECT_THAT(ways.front(), Each(kKeep));
  const auto remade = std::ranges::count_if(layer.groups, &SavedGroup::can_be_remade);
  const auto again = [](const SavedWay& way) { return std::ranges::count(way, kAgain); };
  ASSERT_GE(ways.size(), static_cast<std::size_t>(remade) + 1);
  for (std::int64_t p = 0; p <= remade; ++p) {
    EXPECT_EQ(again(ways[static_cast<std::size_t>(p)]), p);
    EXPECT_TRUE(std::is_sorted(ways[static_cast<std::size_t>(p)].rbegin(),
                               ways[static_cast<std::size_t>(p)].rend()));
  }
  std::int64_t whole = 0;
  for (const SavedGroup& group : layer.groups) whole += group.bytes;
  for (const SavedWay& way : ways)
    EXPECT_EQ(layer.bytes(way, kKeep) + layer.bytes(way, kAgain), whole);
}

TEST_F(SavedLayers, SendTheInputFirstAndNeverWhatIsRemade) {
  const SavedLayer& layer = layers_[1];
  const SavedWay remade = ways_to_remake(layer)[1];
  const std::vector<SavedWay> ways = ways_to_send(layer, remade, kHost);
  ASSERT_FALSE(ways.empty());
  EXPECT_EQ(ways.front().back(), kHost);
  EXPECT_EQ(std::ranges::count(ways.front(), kHost), 1);
  EXPECT_EQ(layer.bytes(ways.front(), kHost),
            runtime::room_of(layer.groups.back().bytes, runtime::Tier::pinned));
  for (SavedWay way : ways) {
    std::ranges::replace(way, kHost, kKeep);
    EXPECT_EQ(way, remade);
  }
  for (std::size_t w = 1; w < ways.size(); ++w)
    EXPECT_GT(layer.bytes(ways[w], kHost), layer.bytes(ways[w - 1], kHost));
}

TEST_F(SavedLayers, CountEveryCopyOfAMicroBatch) {
  const std::vector<SavedLayer> thrice = list_saved_layers(graph_, values_, 3);
  for (std::size_t g = 0; g < thrice[0].groups.size(); ++g)
    EXPECT_EQ(thrice[0].groups[g].bytes, 3 * layers_[0].groups[g].bytes);
}

}  // namespace
}  // namespace strata::plan
