// Divides a list of tensors into safetensors files, by a rule that needs nothing but the list.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/files/safetensors_header.h"

namespace strata::train {

inline constexpr std::int64_t kMaxShardBytes = 5'000'000'000;

/// One file with tensors [first_tensor, end_tensor) of the list, without gaps after the header.
struct ShardLayout {
  std::string name;  ///< BASE.safetensors, or BASE-00001-of-00002.safetensors
  std::size_t first_tensor = 0;
  std::size_t end_tensor = 0;
  std::string header;
  std::int64_t size_bytes = 0;
};

/// Divides the list in its order, as huggingface_hub does: begins a new file if the next tensor
/// would not fit; a tensor larger than `max_shard_bytes` has its own. An empty list gives one file.
std::vector<ShardLayout> lay_out_shards(std::span<const TensorSpec> tensors,
                                        std::string_view base_name, std::int64_t max_shard_bytes,
                                        const Metadata& metadata);

/// The name BASE.safetensors.index.json.
std::string index_name(std::string_view base_name);
/// The text of the index: which file has which tensor.
std::string make_index_text(std::span<const TensorSpec> tensors,
                            std::span<const ShardLayout> shards);

std::int64_t bytes_of(const TensorSpec& tensor);

}  // namespace strata::train
