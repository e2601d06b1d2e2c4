// Builds the Graph of a decoder-only model from its configuration: the forward pass alone;
// differentiate() adds the rest.
#pragma once

#include "compile/model.h"
#include "train/models/model_family.h"

namespace strata::train {

using compile::BuiltModel;
using compile::ModelUse;
using runtime::BatchShape;

/// What a family builds of one micro-batch, up to its head.
struct Body {
  runtime::ValueId hidden;  ///< final normed hidden states [N, hidden], in block "head"
  runtime::ValueId head;    ///< head weight [padded vocabulary, hidden]
};

/// For the builder of a transformer: throws InvalidArgument that names each field that can be no
/// transformer's.
void check_transformer(const ModelConfig& config);

/// Throws InvalidArgument where `config` can be no model's, or when the sequence exceeds the
/// context or the sliding window.
BuiltModel build_model(const ModelConfig& config, const BatchShape& shape, ModelUse use);

}  // namespace strata::train
