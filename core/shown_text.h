// Text that another process wrote into shared memory, made fit to be shown.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string>

namespace strata {

/// Returns the text up to its NUL, or all of it, with control characters replaced: a rank wrote it,
/// and it goes to a terminal.
inline std::string shown_text(const char* source, std::size_t size) {
  std::string text(source, ::strnlen(source, size));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}
template <std::size_t Size>
std::string shown_text(const char (&source)[Size]) {
  return shown_text(source, Size);
}
template <std::size_t Size>
std::string shown_text(const std::array<char, Size>& source) {
  return shown_text(source.data(), Size);
}

}  // namespace strata
