#include "train/models/transformer.h"

#include <fmt/core.h>
#include <string>

#include "core/error.h"

namespace strata::train {
namespace {

void check_sequence(const ModelConfig& config, std::int64_t sequence) {
  const auto limit = [&](std::int64_t most, const char* name, const char* why) {
    if (most > 0 && sequence > most)
      throw InvalidArgument(fmt::format(
          "--sequence-length {} exceeds the model's {} of {} positions{}; choose at most that",
          sequence, name, most, why));
  };
  limit(config.context, "context", "");
  limit(config.sliding_window, "sliding window", ", which is not supported");
}

}  // namespace

void check_transformer(const ModelConfig& c) {
  std::string faults;
  const auto require = [&](bool holds, const std::string& fault) {
    if (!holds) faults += (faults.empty() ? "" : "; ") + fault;
  };
  const auto at_least_one = [&](const char* name, std::int64_t number) {
    require(number >= 1, fmt::format("{} is {}, expected at least 1", name, number));
  };
  const auto probability = [&](const char* name, double p) {
    require(p >= 0 && p < 1, fmt::format("{} is {:f}, expected a probability below 1", name, p));
  };
  at_least_one("vocabulary", c.vocabulary);
  at_least_one("layers", c.layers);
  at_least_one("hidden", c.hidden);
  at_least_one("heads", c.heads);
  at_least_one("kv_heads", c.kv_heads);
  at_least_one("head_size", c.head_size);
  at_least_one("intermediate", c.intermediate);
  require(c.kv_heads < 1 || c.heads % c.kv_heads == 0, "heads is no multiple of kv_heads");
  require(!c.family->learned_positions || c.context >= 1, "context is no number of positions");
  require(c.initializer_range >= 0, "initializer_range is no deviation");
  require(c.norm_epsilon >= 0, "norm_epsilon is below 0");
  probability("embedding_dropout", c.embedding_dropout);
  probability("residual_dropout", c.residual_dropout);
  probability("attention_dropout", c.attention_dropout);
  if (!faults.empty()) throw InvalidArgument("ModelConfig: " + faults);
}

BuiltModel build_model(const ModelConfig& config, const BatchShape& shape, ModelUse use) {
  if (config.family == nullptr)
    throw InvalidArgument(
        "ModelConfig: family is null, expected a row (train/models/model_family.h)");
  check_sequence(config, shape.sequence);
  runtime::GraphBuilder builder(shape.dtype, shape.batch, shape.sequence);
  const Body body = config.family->build(builder, config, use == ModelUse::train);
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
