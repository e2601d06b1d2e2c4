// What people give as --config or --deepspeed that is no DeepSpeed JSON: the YAML of another
// program, the name of a preset. Each is named, with what to type.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace strata::train {

/// What to say of a text that is YAML; nullopt: it is not. `source`: its name in messages.
std::optional<std::string> yaml_advice(std::string_view text, const std::string& source);

/// What to say of a source that is no file but a name such as "zero3"; nullopt: it is not.
std::optional<std::string> preset_advice(std::string_view source);

}  // namespace strata::train
