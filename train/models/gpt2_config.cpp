#include "core/json_writer.h"
#include "train/models/gpt2.h"
#include "train/models/hf_reader.h"

namespace strata::train {

void read_gpt2(const HfReader& reader, ModelConfig& config) {
  config.vocabulary = reader.size("vocab_size", kLargestVocabulary);
  config.layers = reader.size("n_layer", kLargestCount);
  config.hidden = reader.size("n_embd", kLargestWidth);
  config.heads = config.kv_heads = reader.size("n_head", kLargestCount);
  config.head_size = config.hidden / config.heads;
  reader.require_divisor("n_head", config.heads, config.hidden);
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
}

void write_gpt2(const ModelConfig& config, JsonWriter& out) {
  out.member("vocab_size", config.vocabulary)
      .member("n_positions", config.context)
      .member("n_embd", config.hidden)
      .member("n_layer", config.layers)
      .member("n_head", config.heads)
      .key("n_inner");
  if (config.intermediate == 4 * config.hidden)
    out.null();
  else
    out.value(config.intermediate);
  out.member("activation_function", config.gelu_tanh ? "gelu_new" : "gelu")
      .member("resid_pdrop", config.residual_dropout)
      .member("embd_pdrop", config.embedding_dropout)
      .member("attn_pdrop", config.attention_dropout)
      .member("layer_norm_epsilon", config.norm_epsilon)
      .member("initializer_range", config.initializer_range)
      .member("tie_word_embeddings", config.tied_embeddings);
}

}  // namespace strata::train
