// Builds the Graph of a decoder-only transformer from its configuration: forward pass only, in the
// words of the paper; differentiate() adds the rest.
#pragma once

#include "runtime/graph_builder.h"
#include "train/models/model_config.h"

namespace strata::train {

/// What the Graph ends in.
enum class ModelUse : std::uint8_t {
  train,     ///< loss with gradients of head
  evaluate,  ///< loss, forward only, no dropout
  generate,  ///< logits of selected rows: input "rows" int32 [batch], no dropout
};

/// Concrete shapes of one micro-batch (design 2.1).
struct BatchShape {
  DType dtype = DType::f32;
  std::int64_t batch = 1;
  std::int64_t sequence = 1;
};

struct BuiltModel {
  runtime::Graph graph;
  runtime::ValueId loss = runtime::kNoValue;    ///< fp64 scalar (train, evaluate)
  runtime::ValueId logits = runtime::kNoValue;  ///< [batch, padded vocabulary] (generate)
};

/// Throws InvalidArgument that names each field of `config` that can be no model's, or when the
/// sequence exceeds the context or the sliding window.
BuiltModel build_model(const ModelConfig& config, const BatchShape& shape, ModelUse use);

/// Persistent name under which generation leaves the logits.
inline constexpr const char* kLogits = "logits";

}  // namespace strata::train
