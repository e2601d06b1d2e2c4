// Builds the Llama family: Llama 1-3, Mistral, Qwen2/2.5 (biases on q, k, v), Qwen3 (q, k norms).
#pragma once

#include "train/models/model_family.h"

namespace strata::train {

/// The differences within the family: class defaults of transformers, and keys read and written.
struct LlamaKind {
  std::int64_t context = 2048;
  std::int64_t intermediate = 11008;
  std::int64_t kv_heads = 0;        ///< 0: as many as attention heads
  std::int64_t head_size = 0;       ///< 0: hidden / heads
  std::int64_t sliding_window = 0;  ///< default of the key; 0: no such key, windows are refused
  bool bias_key = false;            ///< has the key attention_bias, of q, k, v and o
  bool mlp_bias_key = false;
  bool qkv_bias = false;  ///< always has biases on q, k and v
  bool head_norms = false;
};

/// The functions of their rows in the table of families (model_family.h).
Body build_llama(runtime::GraphBuilder& b, const ModelConfig& c, bool training);
void read_llama(const LlamaKind& kind, const HfReader& reader, ModelConfig& config);
void write_llama(const LlamaKind& kind, const ModelConfig& config, JsonWriter& out);

template <LlamaKind kKind>
constexpr ModelFamily llama_family(std::string_view model_type, std::string_view architecture) {
  return {
      .model_type = model_type,
      .architecture = architecture,
      .build = build_llama,
      .read = [](const HfReader& reader,
                 ModelConfig& config) { read_llama(kKind, reader, config); },
      .write = [](const ModelConfig& config, JsonWriter& out) { write_llama(kKind, config, out); },
      .prefix = "model.",
      .embedding = "model.embed_tokens.weight",
      .mlp_matrices = 3};
}

}  // namespace strata::train
