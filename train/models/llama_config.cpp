#include <fmt/core.h>

#include "core/json_writer.h"
#include "train/models/hf_reader.h"
#include "train/models/hf_rope.h"
#include "train/models/llama.h"

namespace strata::train {
namespace {

void refuse_sliding_layers(const HfReader& reader) {
  const std::optional<JsonValue> types = reader.find("layer_types");
  if (!types) return;
  for (const JsonValue& type : types->elements()) {
    if (type.as_string() != "full_attention") {
      type.fail("found '" + type.as_string() + "', expected full_attention in every layer");
    }
  }
}

void read_attention(const LlamaKind& kind, const HfReader& reader, ModelConfig& config) {
  config.attention_bias = kind.bias_key ? reader.flag("attention_bias", false) : kind.qkv_bias;
  config.attention_output_bias = kind.bias_key && config.attention_bias;
  config.mlp_bias = kind.mlp_bias_key && reader.flag("mlp_bias", false);
  config.head_norms = kind.head_norms;
  config.attention_dropout = reader.number("attention_dropout", 0, 0, 0.999);
  if (kind.sliding_window > 0) {
    const bool said = reader.object().find("sliding_window").has_value();  // null: no window
    config.sliding_window =
        reader.size("sliding_window", kLargestContext, said ? 0 : kind.sliding_window);
  } else {
    reader.require_flag("use_sliding_window", false, "only full attention is built");
  }
  refuse_sliding_layers(reader);
}

}  // namespace

void read_llama(const LlamaKind& kind, const HfReader& reader, ModelConfig& config) {
  config.vocabulary = reader.size("vocab_size", kLargestVocabulary);
  config.layers = reader.size("num_hidden_layers", kLargestCount);
  config.hidden = reader.size("hidden_size", kLargestWidth);
  config.heads = reader.size("num_attention_heads", kLargestCount);
  const bool multi_head = reader.object().find("num_key_value_heads").has_value();  // null counts
  config.kv_heads = reader.size("num_key_value_heads", kLargestCount,
                                multi_head || kind.kv_heads == 0 ? config.heads : kind.kv_heads);
  if (config.heads % config.kv_heads != 0) {
    reader.fail("num_key_value_heads",
                fmt::format("found {}, expected a divisor of the {} attention heads",
                            config.kv_heads, config.heads));
  }
  const bool derived = kind.head_size == 0 && !reader.find("head_dim");
  if (derived) reader.require_divisor("num_attention_heads", config.heads, config.hidden);
  config.head_size = reader.size("head_dim", kLargestWidth,
                                 derived ? config.hidden / config.heads : kind.head_size);
  if (config.head_size % 2 != 0) {
    reader.fail("head_dim", fmt::format("found {}, expected an even head size (rotary embedding)",
                                        config.head_size));
  }
  config.intermediate = reader.size("intermediate_size", kLargestWidth * 4, kind.intermediate);
  config.context = reader.size("max_position_embeddings", kLargestContext, kind.context);
  config.norm_epsilon = reader.number("rms_norm_eps", 1e-6, 0, 1);
  config.tied_embeddings = reader.flag("tie_word_embeddings", false);
  const std::string activation = reader.text("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    reader.fail("hidden_act", "found '" + activation + "', expected silu");
  }
  read_attention(kind, reader, config);
  read_rope(reader, config);
}

void write_llama(const LlamaKind& kind, const ModelConfig& config, JsonWriter& out) {
  out.member("vocab_size", config.vocabulary)
      .member("hidden_size", config.hidden)
      .member("intermediate_size", config.intermediate)
      .member("num_hidden_layers", config.layers)
      .member("num_attention_heads", config.heads)
      .member("num_key_value_heads", config.kv_heads)
      .member("max_position_embeddings", config.context)
      .member("hidden_act", "silu")
      .member("rms_norm_eps", config.norm_epsilon)
      .member("initializer_range", config.initializer_range)
      .member("attention_dropout", config.attention_dropout)
      .member("tie_word_embeddings", config.tied_embeddings);
  if (kind.head_size != 0 || config.head_size * config.heads != config.hidden)
    out.member("head_dim", config.head_size);
  if (kind.bias_key) out.member("attention_bias", config.attention_bias);
  if (kind.mlp_bias_key) out.member("mlp_bias", config.mlp_bias);
  if (kind.sliding_window > 0 && config.sliding_window > 0)
    out.member("sliding_window", config.sliding_window);
  else if (kind.sliding_window > 0)
    out.key("sliding_window").null();
  write_rope(config, out);
}

}  // namespace strata::train
