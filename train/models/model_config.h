// Describes a decoder-only model, read from a Hugging Face config.json (or written to one).
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace strata::train {

struct ModelFamily;  // train/models/model_family.h

/// Rotary scaling as in transformers' modeling_rope_utils; numbers as in config.json.
struct RopeScaling {
  enum class Type { none, linear, llama3, yarn };
  Type type = Type::none;
  double factor = 1;
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  std::int64_t original_context = 0;
  double beta_fast = 32, beta_slow = 1, attention_factor = 0;  ///< yarn; 0: derived from factor
};

struct ModelConfig {
  const ModelFamily* family = nullptr;  ///< must outlive this; find_family(), or a caller's own row
  std::int64_t vocabulary = 0;          ///< size in files; memory pads it to a multiple of 128
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;
  std::int64_t intermediate = 0;    ///< width of the MLP
  std::int64_t context = 0;         ///< longest sequence the model was made for
  std::int64_t sliding_window = 0;  ///< 0: none; longer sequences are refused
  double norm_epsilon = 1e-5;
  double rope_theta = 10000;
  RopeScaling rope_scaling;
  double initializer_range = 0.02;
  bool tied_embeddings = false;
  bool attention_bias = false;         ///< biases of q, k, v
  bool attention_output_bias = false;  ///< bias of o
  bool mlp_bias = false;
  bool head_norms = false;  ///< norms on q and k
  bool gelu_tanh = true;    ///< GPT-2: gelu_new / gelu_pytorch_tanh; false: erf
  double embedding_dropout = 0, residual_dropout = 0, attention_dropout = 0;
  /// Other numbers by name, for families of programs outside this repository.
  std::map<std::string, double> more;

  [[nodiscard]] std::int64_t padded_vocabulary() const { return (vocabulary + 127) / 128 * 128; }
};

}  // namespace strata::train
