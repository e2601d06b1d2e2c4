// UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

/// Number of bytes of the character that begins `text`; 0 when `text` does not begin with a valid
/// one.
std::size_t utf8_character_size(std::string_view text);

/// Appends a code point (not a surrogate, at most 0x10ffff).
void append_utf8(std::string& out, std::uint32_t code_point);

}  // namespace strata
