// Base64 (RFC 4648), standard and URL-safe alphabet, padding optional.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace strata::train {

/// nullopt when `text` is not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace strata::train
