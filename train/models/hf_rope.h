// Reads and writes the rotary embedding's settings in a config.json: rope_theta and rope_scaling of
// transformers 4, or rope_parameters of transformers 5.
#pragma once

#include "core/json_writer.h"
#include "train/models/hf_reader.h"
#include "train/models/model_config.h"

namespace strata::train {

/// Fills rope_theta and rope_scaling; config.context must be set. Refuses rope types other than
/// default, linear, llama3 and yarn, and rotation of a part of the head.
void read_rope(const HfReader& reader, ModelConfig& config);

/// Writes rope_theta and rope_scaling, as transformers 4 spells them, into an open object.
void write_rope(const ModelConfig& config, JsonWriter& out);

/// True if both configurations have the same rotation.
bool same_rope(const ModelConfig& a, const ModelConfig& b);

}  // namespace strata::train
