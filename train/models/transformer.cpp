#include "train/models/transformer.h"

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

}  // namespace

BuiltModel build_model(const ModelConfig& config, const BatchShape& shape, ModelUse use) {
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
    model.graph.make_persistent(model.logits, kLogits);
  }
  return model;
}

}  // namespace strata::train
