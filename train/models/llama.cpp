#include "train/models/llama.h"

#include <cmath>

#include "train/models/transformer.h"

namespace strata::train {
namespace {

using runtime::Affine;
using runtime::GraphBuilder;
using runtime::Initializer;
using runtime::kNoValue;
using runtime::ValueId;

class Llama {
 public:
  Llama(GraphBuilder& builder, const ModelConfig& config, bool training)
      : b_(builder),
        c_(config),
        attention_dropout_(training ? config.attention_dropout : 0),
        normal_{config.initializer_range, 0} {}

  Body build() {
    b_.begin_block("embedding");
    const ValueId tokens = token_matrix("model.embed_tokens.weight");
    ValueId x = b_.embedding(tokens, kNoValue);
    table_ = b_.rope_table(rope_attributes());
    for (std::int64_t i = 0; i < c_.layers; ++i) x = layer(i, x);
    b_.begin_block("head");
    const Affine last = norm("model.norm", c_.hidden);
    const ValueId head = c_.tied_embeddings ? tokens : token_matrix("lm_head.weight");
    return {b_.norm(x, last, c_.norm_epsilon, true), head};
  }

 private:
  ValueId token_matrix(const char* name) {
    return b_.padded_matrix(name, c_.vocabulary, c_.padded_vocabulary(), c_.hidden, normal_);
  }

  ValueId layer(std::int64_t index, ValueId x) {
    b_.begin_block("layer." + std::to_string(index));
    const std::string prefix = "model.layers." + std::to_string(index);
    const Affine input_norm = norm(prefix + ".input_layernorm", c_.hidden);
    const std::string attention = prefix + ".self_attn.", mlp = prefix + ".mlp.";
    const std::int64_t q = c_.heads * c_.head_size, kv = c_.kv_heads * c_.head_size;
    const Affine qkv =
        product({{attention + "q_proj", q}, {attention + "k_proj", kv}, {attention + "v_proj", kv}},
                c_.hidden, c_.attention_bias);
    const Affine q_norm = c_.head_norms ? norm(attention + "q_norm", c_.head_size) : Affine{};
    const Affine k_norm = c_.head_norms ? norm(attention + "k_norm", c_.head_size) : Affine{};
    const Affine o = product({{attention + "o_proj", c_.hidden}}, q, c_.attention_output_bias);
    const Affine post_norm = norm(prefix + ".post_attention_layernorm", c_.hidden);
    const Affine gate_up =
        product({{mlp + "gate_proj", c_.intermediate}, {mlp + "up_proj", c_.intermediate}},
                c_.hidden, c_.mlp_bias);
    const Affine down = product({{mlp + "down_proj", c_.hidden}}, c_.intermediate, c_.mlp_bias);

    const ValueId packed = b_.linear(b_.norm(x, input_norm, c_.norm_epsilon, true), qkv);
    runtime::Heads heads = b_.split_heads(packed, c_.heads, c_.kv_heads, c_.head_size);
    if (c_.head_norms) {
      heads.q = b_.norm(heads.q, q_norm, c_.norm_epsilon, true);
      heads.k = b_.norm(heads.k, k_norm, c_.norm_epsilon, true);
    }
    heads.q = b_.rope_in_place(heads.q, table_);
    heads.k = b_.rope_in_place(heads.k, table_);
    const double scale = 1.0 / std::sqrt(static_cast<double>(c_.head_size));
    const ValueId mixed = b_.linear(b_.attention(heads, scale, attention_dropout_), o);
    const auto [sum, normed] = b_.residual_norm(x, mixed, post_norm, c_.norm_epsilon, true, 0);
    return b_.residual_add(sum, b_.linear(b_.swiglu(b_.linear(normed, gate_up)), down), 0);
  }

  Affine norm(const std::string& name, std::int64_t width) {
    return {b_.vector({{name + ".weight", width}}, {0, 1}), kNoValue};
  }

  /// One product of several weights that files have separately, given by name and outputs of each.
  Affine product(const std::vector<runtime::WeightPart>& parts, std::int64_t in, bool bias) {
    const auto all = [&](const char* what) {
      std::vector<runtime::WeightPart> named = parts;
      for (runtime::WeightPart& part : named) part.name += what;
      return named;
    };
    Affine affine{b_.matrix(all(".weight"), in, normal_), kNoValue};
    if (bias) affine.bias = b_.vector(all(".bias"), {0, 0});
    return affine;
  }

  [[nodiscard]] kernels::Attributes rope_attributes() const {
    const RopeScaling& s = c_.rope_scaling;
    return {{"head_size", static_cast<double>(c_.head_size)},
            {"theta", c_.rope_theta},
            {"scaling", static_cast<double>(s.type)},
            {"factor", s.factor},
            {"low", s.low_frequency_factor},
            {"high", s.high_frequency_factor},
            {"original", static_cast<double>(s.original_context)},
            {"beta_fast", s.beta_fast},
            {"beta_slow", s.beta_slow},
            {"attention_factor", s.attention_factor}};
  }

  GraphBuilder& b_;
  const ModelConfig& c_;
  double attention_dropout_;
  Initializer normal_;
  ValueId table_ = kNoValue;
};

}  // namespace

Body build_llama(GraphBuilder& b, const ModelConfig& c, bool training) {
  check_transformer(c);
  return Llama(b, c, training).build();
}

}  // namespace strata::train
