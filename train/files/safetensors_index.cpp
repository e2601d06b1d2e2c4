#include "train/files/safetensors_index.h"

namespace strata::train {

std::vector<IndexEntry> parse_safetensors_index(std::string_view text, const std::string& file) {
  JsonOptions options;
  options.depth_limit = 8;
  const JsonValue map = parse_json(text, file, options).at("weight_map");
  std::vector<IndexEntry> entries;
  for (const auto& [tensor, value] : map.members()) {
    std::string shard = value.as_string();
    if (shard.empty() || shard == "." || shard == ".." ||
        shard.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
      map.fail("the shard \"" + shard + "\" is not the name of a file in the index's folder");
    entries.push_back({tensor, std::move(shard), value});
  }
  return entries;
}

}  // namespace strata::train
