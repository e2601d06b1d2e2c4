// Converts between a Hugging Face config.json and ModelConfig, by the rows of a table of families.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "train/models/model_family.h"

namespace strata::train {

/// Reads the shape of a model. `model` is a config.json, a directory that holds one, or the name of
/// a preset (configs/models). `own`: the caller's families besides those of this repository; they
/// must outlive the result. Throws ConfigError naming file, line, key, found and expected value for
/// unknown model types, missing or impossible numbers, and settings that would change the
/// mathematics but are not supported (other activations, sliding windows of Qwen, scaled attention
/// ...).
ModelConfig read_model_config(const std::string& model, std::span<const ModelFamily> own = {});

/// Parses the text of a config.json; `file` is its name in messages.
ModelConfig parse_model_config(std::string_view text, const std::string& file,
                               std::span<const ModelFamily> own = {});

/// Makes the config.json of a directory that transformers can load. `original`: the text that the
/// model was read from ("": none), whose other members are kept in their order. `weights`: the type
/// of the tensors beside it, so that transformers does not round them to another.
std::string to_hf_config_json(const ModelConfig& config, std::string_view original,
                              std::optional<DType> weights = std::nullopt);

}  // namespace strata::train
