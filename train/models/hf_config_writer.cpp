#include <set>
#include <utility>
#include <vector>

#include "core/json_writer.h"
#include "train/models/hf_config.h"
#include "train/models/hf_rope.h"

namespace strata::train {
namespace {

/// A member of the written object: its key and its value as JSON text.
using Member = std::pair<std::string, std::string>;

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(double value) { return json_number(value); }

std::string_view architecture_of(ModelFamily family) {
  switch (family) {
    case ModelFamily::gpt2:
      return "GPT2LMHeadModel";
    case ModelFamily::llama:
      return "LlamaForCausalLM";
    case ModelFamily::qwen2:
      return "Qwen2ForCausalLM";
    case ModelFamily::qwen3:
      return "Qwen3ForCausalLM";
    case ModelFamily::mistral:
      return "MistralForCausalLM";
  }
  return "";
}

std::string_view torch_name_of(DType type) {
  if (type == DType::bf16) return "bfloat16";
  if (type == DType::f16) return "float16";
  return "float32";
}

std::vector<Member> gpt2_members(const ModelConfig& config) {
  return {
      {"vocab_size", text_of(config.vocabulary)},
      {"n_positions", text_of(config.context)},
      {"n_embd", text_of(config.hidden)},
      {"n_layer", text_of(config.layers)},
      {"n_head", text_of(config.heads)},
      {"n_inner", config.intermediate == 4 * config.hidden ? "null" : text_of(config.intermediate)},
      {"activation_function", config.gelu_tanh ? "\"gelu_new\"" : "\"gelu\""},
      {"resid_pdrop", text_of(config.residual_dropout)},
      {"embd_pdrop", text_of(config.embedding_dropout)},
      {"attn_pdrop", text_of(config.attention_dropout)},
      {"layer_norm_epsilon", text_of(config.norm_epsilon)},
      {"initializer_range", text_of(config.initializer_range)},
      {"tie_word_embeddings", text_of(config.tied_embeddings)},
  };
}

std::vector<Member> llama_like_members(const ModelConfig& config) {
  std::vector<Member> members = {
      {"vocab_size", text_of(config.vocabulary)},
      {"hidden_size", text_of(config.hidden)},
      {"intermediate_size", text_of(config.intermediate)},
      {"num_hidden_layers", text_of(config.layers)},
      {"num_attention_heads", text_of(config.heads)},
      {"num_key_value_heads", text_of(config.kv_heads)},
      {"max_position_embeddings", text_of(config.context)},
      {"hidden_act", "\"silu\""},
      {"rms_norm_eps", text_of(config.norm_epsilon)},
      {"initializer_range", text_of(config.initializer_range)},
      {"attention_dropout", text_of(config.attention_dropout)},
      {"tie_word_embeddings", text_of(config.tied_embeddings)},
  };
  if (config.family == ModelFamily::qwen3 || config.head_size * config.heads != config.hidden) {
    members.emplace_back("head_dim", text_of(config.head_size));
  }
  if (config.family == ModelFamily::llama || config.family == ModelFamily::qwen3) {
    members.emplace_back("attention_bias", text_of(config.attention_bias));
  }
  if (config.family == ModelFamily::llama) {
    members.emplace_back("mlp_bias", text_of(config.mlp_bias));
  }
  if (config.family == ModelFamily::mistral) {
    members.emplace_back("sliding_window",
                         config.sliding_window > 0 ? text_of(config.sliding_window) : "null");
  }
  return members;
}

std::string rope_text(const RopeScaling& scaling) {
  if (scaling.type == RopeScaling::Type::none) return "null";
  JsonWriter out(0);
  out.begin_object().member("rope_type", name_of(scaling.type)).member("factor", scaling.factor);
  if (scaling.type != RopeScaling::Type::linear) {
    out.member("original_max_position_embeddings", scaling.original_context);
  }
  if (scaling.type == RopeScaling::Type::llama3) {
    out.member("low_freq_factor", scaling.low_frequency_factor);
    out.member("high_freq_factor", scaling.high_frequency_factor);
  }
  if (scaling.type == RopeScaling::Type::yarn) {
    out.member("beta_fast", scaling.beta_fast).member("beta_slow", scaling.beta_slow);
    if (scaling.attention_factor != 0) out.member("attention_factor", scaling.attention_factor);
  }
  return out.end_object().finish();
}

/// The members that this configuration decides, in the order of a new file.
std::vector<Member> members_of(const ModelConfig& config, std::optional<DType> weights) {
  const bool gpt2 = config.family == ModelFamily::gpt2;
  std::vector<Member> members = gpt2 ? gpt2_members(config) : llama_like_members(config);
  if (!gpt2) {
    members.emplace_back("rope_theta", text_of(config.rope_theta));
    members.emplace_back("rope_scaling", rope_text(config.rope_scaling));
  }
  const std::string type(model_type_of(config.family));
  members.emplace(members.begin(), "model_type", quoted_json(type));
  if (weights) {
    const std::string name(torch_name_of(*weights));
    members.emplace_back("dtype", quoted_json(name));
    members.emplace_back("torch_dtype", quoted_json(name));
  }
  return members;
}

/// Left as the original has them when they mean the same rotation: there are two spellings.
bool is_rope_key(std::string_view key) {
  return key == "rope_theta" || key == "rope_scaling" || key == "rope_parameters" ||
         key == "original_max_position_embeddings";
}

const std::string* find(const std::vector<Member>& members, std::string_view key) {
  for (const Member& member : members) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

/// Writes `text`, a JSON value, as the value of `key`.
void write(JsonWriter& out, const std::string& key, const std::string& text) {
  out.key(key).value(parse_json(text, "config.json", {}));
}

}  // namespace

std::string to_hf_config_json(const ModelConfig& config, std::string_view original,
                              std::optional<DType> weights) {
  std::vector<Member> members = members_of(config, weights);
  JsonWriter out;
  out.begin_object();
  std::set<std::string> written;
  if (original.empty()) {
    out.key("architectures").begin_array().value(architecture_of(config.family)).end_array();
    // transformers' own defaults are GPT-2's 50256, which a smaller vocabulary does not have.
    out.key("bos_token_id").null().key("eos_token_id").null();
  } else {
    const std::string name = "the original config.json";
    const bool same_rotation = same_rope(config, parse_model_config(original, name));
    if (same_rotation) {
      std::erase_if(members, [](const Member& member) { return is_rope_key(member.first); });
    }
    for (const auto& [key, value] : parse_json(original, name, {}).members()) {
      if (is_rope_key(key) && !same_rotation) continue;
      const std::string* decided = find(members, key);
      if (decided != nullptr) {
        write(out, key, *decided);
      } else {
        out.key(key).value(value);
      }
      written.insert(key);
    }
  }
  // transformers before 4.56 knows torch_dtype only; an original that says either needs no other.
  if (written.contains("torch_dtype")) written.insert("dtype");
  written.insert("torch_dtype");
  for (const auto& [key, text] : members) {
    if (!written.contains(key)) write(out, key, text);
  }
  return out.end_object().finish() + "\n";
}

}  // namespace strata::train
