#include "train/models/transformer.h"

#include <string>

#include "core/error.h"
#include "train/models/gpt2.h"
#include "train/models/llama.h"

namespace strata::train {
namespace {

void check_sequence(const ModelConfig& config, const BatchShape& shape) {
  if (config.context > 0 && shape.sequence > config.context)
    throw InvalidArgument("--sequence-length " + std::to_string(shape.sequence) +
                          " exceeds the model's context of " + std::to_string(config.context) +
                          " positions; choose at most that");
  if (config.sliding_window > 0 && shape.sequence > config.sliding_window)
    throw InvalidArgument("--sequence-length " + std::to_string(shape.sequence) +
                          " exceeds the model's sliding window of " +
                          std::to_string(config.sliding_window) +
                          " positions, which is not supported; choose at most that");
}

void check_config(const ModelConfig& c) {
  std::string faults;
  const auto require = [&](bool holds, const std::string& fault) {
    if (!holds) faults += (faults.empty() ? "" : "; ") + fault;
  };
  const auto at_least_one = [&](const char* name, std::int64_t number) {
    require(number >= 1,
            std::string(name) + " is " + std::to_string(number) + ", expected at least 1");
  };
  const auto probability = [&](const char* name, double p) {
    require(p >= 0 && p < 1,
            std::string(name) + " is " + std::to_string(p) + ", expected a probability below 1");
  };
  at_least_one("vocabulary", c.vocabulary);
  at_least_one("layers", c.layers);
  at_least_one("hidden", c.hidden);
  at_least_one("heads", c.heads);
  at_least_one("kv_heads", c.kv_heads);
  at_least_one("head_size", c.head_size);
  at_least_one("intermediate", c.intermediate);
  require(c.kv_heads < 1 || c.heads % c.kv_heads == 0, "heads is no multiple of kv_heads");
  require(c.family != ModelFamily::gpt2 || c.context >= 1, "context is no number of positions");
  require(c.initializer_range >= 0, "initializer_range is no deviation");
  require(c.norm_epsilon >= 0, "norm_epsilon is below 0");
  probability("embedding_dropout", c.embedding_dropout);
  probability("residual_dropout", c.residual_dropout);
  probability("attention_dropout", c.attention_dropout);
  if (!faults.empty()) throw InvalidArgument("ModelConfig: " + faults);
}

}  // namespace

BuiltModel build_model(const ModelConfig& config, const BatchShape& shape, ModelUse use) {
  check_config(config);
  check_sequence(config, shape);
  runtime::GraphBuilder builder(shape.dtype, shape.batch, shape.sequence);
  const bool training = use == ModelUse::train;
  const Body body = config.family == ModelFamily::gpt2 ? build_gpt2(builder, config, training)
                                                       : build_llama(builder, config, training);
  BuiltModel model;
  if (use == ModelUse::generate) {
    const runtime::ValueId rows = builder.input("rows", {DType::i32, kernels::Shape{shape.batch}});
    model.logits = builder.linear(builder.select_rows(body.hidden, rows), {body.head});
  } else if (use == ModelUse::evaluate) {
    model.loss = builder.head_loss_eval(body.hidden, body.head, config.vocabulary);
  } else {
    model.loss = builder.head_loss(body.hidden, body.head, config.vocabulary);
  }
  model.graph = builder.finish();
  if (use == ModelUse::generate) {
    model.graph.make_persistent(model.logits, compile::kLogits);
  }
  return model;
}

}  // namespace strata::train
