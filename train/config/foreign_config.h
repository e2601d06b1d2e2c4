// Recognizes what people give as --config or --deepspeed that is no DeepSpeed JSON (weights, the
// YAML of another program, the name of a preset) and says what to type instead.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace strata::train {

/// Advice if the file holds no text, by its beginning, else nullopt. Throws IoError if it cannot be
/// read.
std::optional<std::string> binary_advice(const std::string& path);

/// Advice if the text is YAML, else nullopt. `source`: its name in messages.
std::optional<std::string> yaml_advice(std::string_view text, const std::string& source);

/// Advice if the source is a name such as "zero3" instead of a file, else nullopt.
std::optional<std::string> preset_advice(std::string_view source);

}  // namespace strata::train
