#include "train/files/shard_layout.h"

#include <fmt/core.h>

#include "core/check.h"
#include "core/json_writer.h"

namespace strata::train {
namespace {

std::string shard_name(std::string_view base, std::size_t index, std::size_t count) {
  if (count == 1) return fmt::format("{}.safetensors", base);
  return fmt::format("{}-{:05}-of-{:05}.safetensors", base, index + 1, count);
}

}  // namespace

std::int64_t bytes_of(const TensorSpec& tensor) {
  const auto elements = checked_elements(tensor.shape);
  STRATA_CHECK(elements && *elements <= INT64_MAX / size_of(tensor.dtype), tensor.name);
  return *elements * size_of(tensor.dtype);
}

std::vector<ShardLayout> lay_out_shards(std::span<const TensorSpec> tensors,
                                        std::string_view base_name, std::int64_t max_shard_bytes,
                                        const Metadata& metadata) {
  std::vector<ShardLayout> shards(1);
  std::int64_t size = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t bytes = bytes_of(tensors[i]);
    if (i > shards.back().first_tensor && size + bytes > max_shard_bytes) {
      shards.push_back({.first_tensor = i});
      size = 0;
    }
    size += bytes;
    shards.back().end_tensor = i + 1;
  }
  for (std::size_t s = 0; s < shards.size(); ++s) {
    ShardLayout& shard = shards[s];
    const auto part = tensors.subspan(shard.first_tensor, shard.end_tensor - shard.first_tensor);
    shard.name = shard_name(base_name, s, shards.size());
    shard.header = make_safetensors_header(part, metadata);
    shard.size_bytes = static_cast<std::int64_t>(shard.header.size());
    for (const TensorSpec& tensor : part) shard.size_bytes += bytes_of(tensor);
  }
  return shards;
}

std::string index_name(std::string_view base_name) {
  return std::string(base_name) + ".safetensors.index.json";
}

std::string make_index_text(std::span<const TensorSpec> tensors,
                            std::span<const ShardLayout> shards) {
  std::int64_t total = 0;
  for (const TensorSpec& tensor : tensors) total += bytes_of(tensor);
  JsonWriter json(2);
  json.begin_object().key("metadata").begin_object().member("total_size", total).end_object();
  json.key("weight_map").begin_object();
  for (const ShardLayout& shard : shards)
    for (std::size_t i = shard.first_tensor; i < shard.end_tensor; ++i)
      json.member(tensors[i].name, shard.name);
  json.end_object().end_object();
  return json.finish() + "\n";
}

}  // namespace strata::train
