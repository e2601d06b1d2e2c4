#include "train/models/hf_config.h"

#include <algorithm>

#include "core/json.h"
#include "train/config/nearest_name.h"
#include "train/models/hf_reader.h"
#include "train/models/hf_rope.h"
#include "train/models/presets.h"

namespace strata::train {
namespace {

constexpr ModelFamily kFamilies[] = {ModelFamily::gpt2, ModelFamily::llama, ModelFamily::qwen2,
                                     ModelFamily::qwen3, ModelFamily::mistral};
// Limits keep products of sizes inside 64 bits, and token ids inside 32.
constexpr std::int64_t kLargestVocabulary = (std::int64_t{1} << 31) - 256;
constexpr std::int64_t kLargestWidth = std::int64_t{1} << 24;
constexpr std::int64_t kLargestCount = std::int64_t{1} << 16;

ModelFamily family_of(const HfReader& reader) {
  if (!reader.find("model_type")) {
    reader.fail("model_type", "missing, expected gpt2, llama, qwen2, qwen3 or mistral");
  }
  const std::string type = reader.text("model_type", "");
  std::vector<std::string_view> known;
  for (const ModelFamily family : kFamilies) {
    if (type == model_type_of(family)) return family;
    known.push_back(model_type_of(family));
  }
  std::string message = "unknown model type '" + type + "'" + suggestion(type, known) + "; known:";
  for (const std::string_view name : known) message += ' ' + std::string(name);
  reader.fail("model_type", message);
}

void check_head_size(const HfReader& reader, const ModelConfig& config,
                     std::string_view heads_key) {
  if (config.hidden % config.heads == 0) return;
  reader.fail(heads_key, "found " + std::to_string(config.heads) +
                             " heads, expected a divisor of the hidden size " +
                             std::to_string(config.hidden));
}

void read_gpt2(const HfReader& reader, ModelConfig& config) {
  config.vocabulary = reader.size("vocab_size", kLargestVocabulary);
  config.layers = reader.size("n_layer", kLargestCount);
  config.hidden = reader.size("n_embd", kLargestWidth);
  config.heads = config.kv_heads = reader.size("n_head", kLargestCount);
  config.head_size = config.hidden / config.heads;
  check_head_size(reader, config, "n_head");
  config.intermediate = reader.size("n_inner", kLargestWidth * 4, config.hidden * 4);
  config.context = reader.size("n_positions", kLargestContext, 1024);
  config.norm_epsilon = reader.number("layer_norm_epsilon", 1e-5, 0, 1);
  config.tied_embeddings = reader.flag("tie_word_embeddings", true);
  config.attention_bias = config.attention_output_bias = config.mlp_bias = true;
  const std::string activation = reader.text("activation_function", "gelu_new");
  config.gelu_tanh = activation == "gelu_new" || activation == "gelu_pytorch_tanh";
  if (!config.gelu_tanh && activation != "gelu") {
    reader.fail("activation_function",
                "found '" + activation + "', expected gelu_new, gelu_pytorch_tanh or gelu");
  }
  config.embedding_dropout = reader.number("embd_pdrop", 0.1, 0, 0.999);
  config.residual_dropout = reader.number("resid_pdrop", 0.1, 0, 0.999);
  config.attention_dropout = reader.number("attn_pdrop", 0.1, 0, 0.999);
  const std::string scale = "only scores scaled by 1/sqrt(head size) are built";
  reader.require_flag("scale_attn_weights", true, scale);
  reader.require_flag("scale_attn_by_inverse_layer_idx", false, scale);
  reader.require_flag("add_cross_attention", false, "only decoder-only models are built");
  config.name_prefix = "transformer.";
}

/// Class defaults of transformers that differ between the families.
struct FamilyDefaults {
  std::int64_t context, intermediate, kv_heads, head_size;  // 0: no default, or derived
};

FamilyDefaults defaults_of(ModelFamily family) {
  switch (family) {
    case ModelFamily::qwen2:
      return {32768, 22016, 32, 0};
    case ModelFamily::qwen3:
      return {32768, 22016, 32, 128};
    case ModelFamily::mistral:
      return {131072, 14336, 8, 0};
    default:
      return {2048, 11008, 0, 0};
  }
}

void refuse_sliding_layers(const HfReader& reader) {
  const std::optional<JsonValue> types = reader.find("layer_types");
  if (!types) return;
  for (const JsonValue& type : types->elements()) {
    if (type.as_string() != "full_attention") {
      type.fail("found '" + type.as_string() + "', expected full_attention in every layer");
    }
  }
}

void read_attention(const HfReader& reader, ModelConfig& config) {
  const bool biases_by_key =
      config.family == ModelFamily::llama || config.family == ModelFamily::qwen3;
  config.attention_bias =
      biases_by_key ? reader.flag("attention_bias", false) : config.family == ModelFamily::qwen2;
  config.attention_output_bias = biases_by_key && config.attention_bias;
  config.mlp_bias = config.family == ModelFamily::llama && reader.flag("mlp_bias", false);
  config.attention_dropout = reader.number("attention_dropout", 0, 0, 0.999);
  if (config.family == ModelFamily::mistral) {
    const bool said = reader.object().find("sliding_window").has_value();  // null: no window
    config.sliding_window = reader.size("sliding_window", kLargestContext, said ? 0 : 4096);
  } else {
    reader.require_flag("use_sliding_window", false, "only full attention is built");
  }
  refuse_sliding_layers(reader);
}

void read_llama_like(const HfReader& reader, ModelConfig& config) {
  const FamilyDefaults defaults = defaults_of(config.family);
  config.vocabulary = reader.size("vocab_size", kLargestVocabulary);
  config.layers = reader.size("num_hidden_layers", kLargestCount);
  config.hidden = reader.size("hidden_size", kLargestWidth);
  config.heads = reader.size("num_attention_heads", kLargestCount);
  const bool multi_head = reader.object().find("num_key_value_heads").has_value();  // null
  config.kv_heads =
      reader.size("num_key_value_heads", kLargestCount,
                  multi_head || defaults.kv_heads == 0 ? config.heads : defaults.kv_heads);
  if (config.heads % config.kv_heads != 0) {
    reader.fail("num_key_value_heads", "found " + std::to_string(config.kv_heads) +
                                           ", expected a divisor of the " +
                                           std::to_string(config.heads) + " attention heads");
  }
  const bool derived = defaults.head_size == 0 && !reader.find("head_dim");
  if (derived) check_head_size(reader, config, "num_attention_heads");
  config.head_size = reader.size("head_dim", kLargestWidth,
                                 derived ? config.hidden / config.heads : defaults.head_size);
  if (config.head_size % 2 != 0) {
    reader.fail("head_dim", "found " + std::to_string(config.head_size) +
                                ", expected an even head size (rotary embedding)");
  }
  config.intermediate = reader.size("intermediate_size", kLargestWidth * 4, defaults.intermediate);
  config.context = reader.size("max_position_embeddings", kLargestContext, defaults.context);
  config.norm_epsilon = reader.number("rms_norm_eps", 1e-6, 0, 1);
  config.tied_embeddings = reader.flag("tie_word_embeddings", false);
  const std::string activation = reader.text("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    reader.fail("hidden_act", "found '" + activation + "', expected silu");
  }
  read_attention(reader, config);
  read_rope(reader, config);
  config.name_prefix = "model.";
}

ModelConfig model_config_from(const JsonValue& document) {
  const HfReader reader(document);
  ModelConfig config;
  config.family = family_of(reader);
  config.initializer_range = reader.number("initializer_range", 0.02, 0, 100);
  if (reader.find("quantization_config")) {
    reader.fail("quantization_config", "quantized weights are not trained; use the original model");
  }
  if (config.family == ModelFamily::gpt2) {
    read_gpt2(reader, config);
  } else {
    read_llama_like(reader, config);
  }
  return config;
}

JsonOptions strict_options() {
  JsonOptions options;
  options.fault = JsonFault::configuration;
  return options;
}

}  // namespace

ModelConfig parse_model_config(std::string_view text, const std::string& file) {
  return model_config_from(parse_json(text, file, strict_options()));
}

ModelConfig read_model_config(const std::string& model) {
  return model_config_from(read_json_file(find_model_config(model), strict_options()));
}

}  // namespace strata::train
