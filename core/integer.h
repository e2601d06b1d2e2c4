// Strict reading of integers from command lines and environment variables.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace strata {

/// The whole of `text` as a decimal integer (sign allowed); nullopt when anything else is in it,
/// when it is empty or does not fit.
std::optional<std::int64_t> parse_integer(std::string_view text);

}  // namespace strata
