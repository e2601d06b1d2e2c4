// Parses and prints amounts of memory as people write them: "24GB", "16GiB", plain bytes.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace strata {

/// The number of bytes that means no budget.
inline constexpr std::int64_t kUnlimitedMemory = std::numeric_limits<std::int64_t>::max();

/// Reads a number of at least 0 with an optional unit: B, KB, MB, GB, TB (powers of 1000) or KiB,
/// MiB, GiB, TiB (of 1024), in any case, with or without spaces between. Drops fractions of a byte.
/// "unlimited" gives kUnlimitedMemory. Returns nullopt for anything else, or a number too large.
std::optional<std::int64_t> parse_byte_size(std::string_view text);

/// Returns the shortest text that parse_byte_size reads back as the same number.
std::string byte_size_text(std::int64_t bytes);

}  // namespace strata
