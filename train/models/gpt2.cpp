#include "train/models/gpt2.h"

#include <cmath>

#include "train/models/transformer.h"

namespace strata::train {
namespace {

using runtime::Affine;
using runtime::GraphBuilder;
using runtime::Initializer;
using runtime::kNoValue;
using runtime::ValueId;

class Gpt2 {
 public:
  Gpt2(GraphBuilder& builder, const ModelConfig& config, bool training)
      : b_(builder),
        c_(config),
        residual_dropout_(training ? config.residual_dropout : 0),
        attention_dropout_(training ? config.attention_dropout : 0),
        embedding_dropout_(training ? config.embedding_dropout : 0),
        normal_{config.initializer_range, 0},
        // Residual branches begin smaller, so that the variance does not grow with depth.
        residual_{config.initializer_range / std::sqrt(2.0 * static_cast<double>(config.layers)),
                  0} {}

  Body build() {
    b_.begin_block("embedding");
    const ValueId tokens = token_matrix("transformer.wte.weight");
    const ValueId positions =
        b_.matrix({{"transformer.wpe.weight", c_.context}}, c_.hidden, normal_);
    ValueId x = b_.dropout(b_.embedding(tokens, positions), embedding_dropout_);
    for (std::int64_t i = 0; i < c_.layers; ++i) x = layer(i, x);
    b_.begin_block("head");
    const Affine ln_f = norm("transformer.ln_f");
    const ValueId head = c_.tied_embeddings ? tokens : token_matrix("lm_head.weight");
    return {b_.norm(x, ln_f, c_.norm_epsilon, false), head};
  }

 private:
  ValueId token_matrix(const char* name) {
    return b_.padded_matrix(name, c_.vocabulary, c_.padded_vocabulary(), c_.hidden, normal_);
  }

  ValueId layer(std::int64_t index, ValueId x) {
    b_.begin_block("layer." + std::to_string(index));
    const std::string h = "transformer.h." + std::to_string(index);
    const Affine ln_1 = norm(h + ".ln_1");
    const Affine c_attn = product(h + ".attn.c_attn", c_.hidden, 3 * c_.hidden, normal_);
    const Affine c_proj = product(h + ".attn.c_proj", c_.hidden, c_.hidden, residual_);
    const Affine ln_2 = norm(h + ".ln_2");
    const Affine c_fc = product(h + ".mlp.c_fc", c_.hidden, c_.intermediate, normal_);
    const Affine c_out = product(h + ".mlp.c_proj", c_.intermediate, c_.hidden, residual_);

    const ValueId qkv = b_.linear(b_.norm(x, ln_1, c_.norm_epsilon, false), c_attn, true);
    const auto heads = b_.split_heads(qkv, c_.heads, c_.heads, c_.head_size);
    const double scale = 1.0 / std::sqrt(static_cast<double>(c_.head_size));
    const ValueId mixed = b_.linear(b_.attention(heads, scale, attention_dropout_), c_proj, true);
    const auto [sum, normed] =
        b_.residual_norm(x, mixed, ln_2, c_.norm_epsilon, false, residual_dropout_);
    const ValueId expanded = b_.gelu(b_.linear(normed, c_fc, true), c_.gelu_tanh);
    return b_.residual_add(sum, b_.linear(expanded, c_out, true), residual_dropout_);
  }

  Affine norm(const std::string& name) {
    return {b_.vector({{name + ".weight", c_.hidden}}, {0, 1}),
            b_.vector({{name + ".bias", c_.hidden}}, {0, 0})};
  }

  Affine product(const std::string& name, std::int64_t in, std::int64_t out, Initializer init) {
    return {b_.matrix({{name + ".weight", in}}, out, init),
            b_.vector({{name + ".bias", out}}, {0, 0})};
  }

  GraphBuilder& b_;
  const ModelConfig& c_;
  double residual_dropout_, attention_dropout_, embedding_dropout_;
  Initializer normal_, residual_;
};

}  // namespace

Body build_gpt2(GraphBuilder& b, const ModelConfig& c, bool training) {
  check_transformer(c);
  return Gpt2(b, c, training).build();
}

}  // namespace strata::train
