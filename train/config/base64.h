// Decodes base64 (RFC 4648), with the standard or URL-safe alphabet and optional padding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace strata::train {

/// Returns the decoded bytes; nullopt if `text` is not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace strata::train
