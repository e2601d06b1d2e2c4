#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "core/json_writer.h"
#include "train/models/hf_config.h"
#include "train/models/hf_rope.h"

namespace strata::train {
namespace {

using Member = std::pair<std::string, JsonValue>;

std::string_view torch_name_of(DType type) {
  if (type == DType::bf16) return "bfloat16";
  if (type == DType::f16) return "float16";
  return "float32";
}

/// The members that this configuration determines, in the order of a new file.
std::vector<Member> members_of(const ModelConfig& config, std::optional<DType> weights) {
  JsonWriter out;
  out.begin_object().member("model_type", config.family->model_type);
  if (config.family->write != nullptr) config.family->write(config, out);
  if (weights)
    out.member("dtype", torch_name_of(*weights)).member("torch_dtype", torch_name_of(*weights));
  return parse_json(out.end_object().finish(), "config.json", {}).members();
}

/// True for keys that stay as they are if they mean the same rotation, which has two spellings.
bool is_rope_key(std::string_view key) {
  return key == "rope_theta" || key == "rope_scaling" || key == "rope_parameters" ||
         key == "original_max_position_embeddings";
}

}  // namespace

std::string to_hf_config_json(const ModelConfig& config, std::string_view original,
                              std::optional<DType> weights) {
  std::vector<Member> members = members_of(config, weights);
  JsonWriter out;
  out.begin_object();
  std::set<std::string> written;
  if (original.empty()) {
    out.key("architectures").begin_array().value(config.family->architecture).end_array();
    // transformers' defaults are GPT-2's 50256, which a smaller vocabulary does not have.
    out.key("bos_token_id").null().key("eos_token_id").null();
  } else {
    const std::string name = "the original config.json";
    const bool same_rotation =
        same_rope(config, parse_model_config(original, name, {config.family, 1}));
    if (same_rotation) {
      std::erase_if(members, [](const Member& member) { return is_rope_key(member.first); });
    }
    for (const auto& [key, value] : parse_json(original, name, {}).members()) {
      if (is_rope_key(key) && !same_rotation) continue;
      const auto decided = std::ranges::find(members, key, &Member::first);
      out.key(key).value(decided == members.end() ? value : decided->second);
      written.insert(key);
    }
  }
  // Older transformers (before 4.56) know only torch_dtype; an original with either key is enough.
  if (written.contains("torch_dtype")) written.insert("dtype");
  written.insert("torch_dtype");
  for (const auto& [key, value] : members) {
    if (!written.contains(key)) out.key(key).value(value);
  }
  return out.end_object().finish() + "\n";
}

}  // namespace strata::train
