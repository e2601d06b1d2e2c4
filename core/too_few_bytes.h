// Words for amounts of memory that are too small to be meant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

/// The least amount that stands for memory of a machine; fewer bytes are a forgotten unit.
inline constexpr std::int64_t kLeastMeantBytes = 1'000'000;

/// Says what is wrong with `text`, which is `bytes` below that: "which is 24 bytes; give a unit,
/// such as 24GB", or, if it has one, "which is less than 1 MB". `per` follows the amounts: " per
/// second".
std::string too_few_bytes(std::string_view text, std::int64_t bytes, std::string_view example,
                          std::string_view per = "");

}  // namespace strata
