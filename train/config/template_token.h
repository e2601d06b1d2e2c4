// Placeholders of templates that a script should have filled: GBSIZE, CONFIG_FP16_ENABLED, $LR,
// ${LR}, {{ lr }}, <lr>, %LR%, @LR@.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strata::train {

/// Is the whole word one?
bool is_template_token(std::string_view word);

/// Those that stand where a JSON text needs a value, without quotes, each with its line:
/// "12: GBSIZE". Comments and strings are passed over.
std::vector<std::string> bare_template_tokens(std::string_view text);

}  // namespace strata::train
