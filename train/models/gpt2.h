// GPT-2: learned positions, LayerNorm with bias, GELU, tied head, weights stored [in, out].
#pragma once

#include "train/models/transformer.h"

namespace strata::train {

struct Body {
  runtime::ValueId hidden;  ///< final normed hidden states [N, hidden], in block "head"
  runtime::ValueId head;    ///< head weight [padded vocabulary, hidden]
};

Body build_gpt2(runtime::GraphBuilder& b, const ModelConfig& c, bool training);

}  // namespace strata::train
