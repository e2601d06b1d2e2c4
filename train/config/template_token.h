// Finds placeholders of templates that a script should have filled: GBSIZE, CONFIG_FP16_ENABLED,
// $LR, ${LR}, {{ lr }}, <lr>, %LR%, @LR@.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strata::train {

/// True if the whole word is a placeholder.
bool is_template_token(std::string_view word);

/// Lists placeholders that stand unquoted where JSON needs a value, each with its line
/// ("12: GBSIZE"). Skips comments and strings.
std::vector<std::string> bare_template_tokens(std::string_view text);

}  // namespace strata::train
