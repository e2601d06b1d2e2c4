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

/// Reads bytes per second: an amount as above, more than 0, with "/s" ("12GB/s") or "ps", or with
/// bits in place of bytes, which are an eighth: "400Gb/s", "400Gbit/s", "400Gbps". A lower-case b
/// after a prefix is a bit, a capital B a byte. Returns nullopt for anything else.
std::optional<std::int64_t> parse_byte_rate(std::string_view text);

/// Returns "100Gbit/s for bits or 100GB/s for bytes" for a rate that does not say which of them it
/// means, such as "100gb/s"; "" for all others.
std::string both_readings_of_rate(std::string_view text);

/// Returns "24GB (powers of 1000) or 24GiB (of 1024)" for an amount whose unit is a prefix alone,
/// "24G", which is the latter to Slurm and to much of what runs containers, and the former to
/// others; "" for any other text.
std::string both_readings_of_size(std::string_view text);

/// Returns the shortest text that parse_byte_size reads back as the same number.
std::string byte_size_text(std::int64_t bytes);

}  // namespace strata
