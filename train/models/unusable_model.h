// Recognizes what people give as --model that is no model directory, and says what to give instead.
#pragma once

#include <string>
#include <string_view>

namespace strata::train {

/// Throws ConfigError for files of other formats (GGUF, safetensors, pickles, indexes), by name or
/// content, and for directories of other programs, saying how to get the directory that is needed.
/// Does nothing for anything else.
void refuse_unusable_model(const std::string& model);

/// Handles a name that is neither a path here nor a preset: throws ConfigError with the command
/// that downloads it if it looks like a model of the Hugging Face hub, with or without its owner.
/// `preset`: the one whose name is the same in other letters; "": none.
void refuse_hub_name(const std::string& model, const std::string& preset);

/// True if a file that begins with `bytes` is one of safetensors: they are a header's size (8
/// bytes, little-endian, below 4 GiB: its last four are zeros, which no text has), then the brace
/// of JSON.
bool begins_like_safetensors(std::string_view bytes);

}  // namespace strata::train
