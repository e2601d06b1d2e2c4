// The Llama family: Llama 1-3, Mistral, Qwen2/2.5 (biases on q, k, v), Qwen3 (norms on q and k).
#pragma once

#include "train/models/gpt2.h"

namespace strata::train {

Body build_llama(runtime::GraphBuilder& b, const ModelConfig& c, bool training);

}  // namespace strata::train
