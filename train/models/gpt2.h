// GPT-2: learned positions, LayerNorm with bias, GELU, tied head, weights stored [in, out].
#pragma once

#include "train/models/model_family.h"

namespace strata::train {

/// The functions of its row in the table of families (model_family.h).
Body build_gpt2(runtime::GraphBuilder& b, const ModelConfig& c, bool training);
void read_gpt2(const HfReader& reader, ModelConfig& config);
void write_gpt2(const ModelConfig& config, JsonWriter& out);

}  // namespace strata::train
