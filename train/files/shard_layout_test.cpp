#include "train/files/shard_layout.h"

#include <gtest/gtest.h>

#include "core/json.h"

namespace strata::train {
namespace {

const std::vector<TensorSpec> kSpecs = {{"model.embed.weight", DType::f32, {100, 7}},
                                        {"model.norm.weight", DType::bf16, {33}},
                                        {"empty", DType::f32, {0, 4}},
                                        {"scalar", DType::f16, {}},
                                        {"head.weight", DType::f32, {7, 100}}};

std::vector<ShardLayout> shards_of(std::int64_t max_shard_bytes) {
  return lay_out_shards(kSpecs, "model", max_shard_bytes, {{"format", "pt"}});
}

TEST(ShardLayout, WhatFitsIsOneFile) {
  const std::vector<ShardLayout> shards = shards_of(kMaxShardBytes);
  ASSERT_EQ(shards.size(), 1u);
  EXPECT_EQ(shards[0].name, "model.safetensors");
  EXPECT_EQ(shards[0].end_tensor, kSpecs.size());
  EXPECT_EQ(shards[0].size_bytes,
            static_cast<std::int64_t>(shards[0].header.size()) + 2800 + 66 + 2 + 2800);
}

TEST(ShardLayout, ShardsAreFilledInOrderAndIndexed) {
  const std::vector<ShardLayout> shards = shards_of(2900);
  ASSERT_EQ(shards.size(), 2u);
  EXPECT_EQ(shards[0].name, "model-00001-of-00002.safetensors");
  EXPECT_EQ(shards[0].end_tensor, 4u);
  EXPECT_EQ(shards[1].first_tensor, 4u);
  EXPECT_EQ(index_name("model"), "model.safetensors.index.json");
  const JsonValue index = parse_json(make_index_text(kSpecs, shards), "index", {});
  EXPECT_EQ(index.at("metadata").at("total_size").as_integer(), 2800 + 66 + 2 + 2800);
  const auto map = index.at("weight_map").members();
  ASSERT_EQ(map.size(), 5u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(map[i].second.as_string(), shards[0].name);
  EXPECT_EQ(map[4].first, "head.weight");
  EXPECT_EQ(map[4].second.as_string(), shards[1].name);
}

TEST(ShardLayout, ATensorLargerThanAShardHasItsOwn) {
  const std::vector<ShardLayout> shards = shards_of(10);
  ASSERT_EQ(shards.size(), 4u);
  EXPECT_EQ(shards[0].end_tensor, 1u);
  EXPECT_EQ(shards[2].first_tensor, 2u);  // an empty tensor and a scalar
  EXPECT_EQ(shards[2].end_tensor, 4u);
  EXPECT_EQ(shards[3].name, "model-00004-of-00004.safetensors");
}

TEST(ShardLayout, NothingIsOneFile) {
  const std::vector<ShardLayout> shards = lay_out_shards({}, "optimizer", kMaxShardBytes, {});
  ASSERT_EQ(shards.size(), 1u);
  EXPECT_EQ(shards[0].name, "optimizer.safetensors");
}

}  // namespace
}  // namespace strata::train
