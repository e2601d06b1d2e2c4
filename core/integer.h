// Strict reading of integers from command lines and environment variables.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace strata {

/// Parses all of `text` as a decimal integer (minus sign allowed); nullopt when it is empty, holds
/// anything else or does not fit.
std::optional<std::int64_t> parse_integer(std::string_view text);

}  // namespace strata
