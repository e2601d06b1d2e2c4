// A Hugging Face config.json <-> ModelConfig, for the families of a table of rows.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "train/models/model_family.h"

namespace strata::train {

/// Reads the shape of a model. `model` is a config.json, a directory that holds one, or the name of
/// a preset (configs/models). `own`: families of the caller, besides those of this repository; they
/// outlive the result. Throws ConfigError naming file, line, key, found and expected value for
/// unknown model types, missing or impossible numbers, and settings that would change the
/// mathematics and are not built (other activations, sliding windows of Qwen, scaled attention
/// ...).
ModelConfig read_model_config(const std::string& model, std::span<const ModelFamily> own = {});

/// The same for a text; `file` is the name used in messages.
ModelConfig parse_model_config(std::string_view text, const std::string& file,
                               std::span<const ModelFamily> own = {});

/// config.json for a directory that transformers loads. `original` is the text the model was read
/// from ("": none): members that mean nothing to Strata are kept, in their order. `weights`: the
/// type of the tensors written beside it, so that transformers does not round them to another one.
std::string to_hf_config_json(const ModelConfig& config, std::string_view original,
                              std::optional<DType> weights = std::nullopt);

}  // namespace strata::train
