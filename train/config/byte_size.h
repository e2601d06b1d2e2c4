// Amounts of memory as people write them: "24GB", "16GiB", plain bytes.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace strata::train {

/// Stands for no budget.
inline constexpr std::int64_t kUnlimitedMemory = std::numeric_limits<std::int64_t>::max();

/// Bytes of a number of at least 0 with an optional unit: B, KB, MB, GB, TB (powers of 1000) or
/// KiB, MiB, GiB, TiB (of 1024), in any case, with or without spaces between. Fractions of a byte
/// are dropped. "unlimited" is kUnlimitedMemory. nullopt: anything else, or more than fits.
std::optional<std::int64_t> parse_byte_size(std::string_view text);

/// The shortest text that parse_byte_size reads back as the same number.
std::string byte_size_text(std::int64_t bytes);

}  // namespace strata::train
