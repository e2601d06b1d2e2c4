// Builds a decoder-only model's forward Graph from its configuration.
#pragma once

#include "compile/model.h"
#include "train/models/model_family.h"

namespace strata::train {

using compile::BuiltModel;
using compile::ModelUse;
using runtime::BatchShape;

/// The result of a family's builder for one micro-batch: the inputs of the head.
struct Body {
  runtime::ValueId hidden;  ///< final normed hidden states [N, hidden], in block "head"
  runtime::ValueId head;    ///< head weight [padded vocabulary, hidden]
};

/// Called by the builder of a transformer: throws InvalidArgument that names each field with a
/// value that no transformer can have.
void check_transformer(const ModelConfig& config);

/// Builds the model. Throws InvalidArgument for a `config` that no model can have, or a sequence
/// longer than the context or the sliding window.
BuiltModel build_model(const ModelConfig& config, const BatchShape& shape, ModelUse use);

}  // namespace strata::train
