// Builds the Graph of a decoder-only transformer from its configuration: forward pass only, in the
// words of the paper; differentiate() adds the rest.
#pragma once

#include "compile/model.h"
#include "train/models/model_config.h"

namespace strata::train {

using compile::BuiltModel;
using compile::ModelUse;
using runtime::BatchShape;

/// Throws InvalidArgument that names each field of `config` that can be no model's, or when the
/// sequence exceeds the context or the sliding window.
BuiltModel build_model(const ModelConfig& config, const BatchShape& shape, ModelUse use);

}  // namespace strata::train
