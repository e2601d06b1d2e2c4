// Lower case of the 26 ASCII letters, independent of the locale; all other bytes stay.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace strata {

constexpr char ascii_lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string ascii_lower_case(std::string text) {
  for (char& c : text) c = ascii_lower_case(c);
  return text;
}

/// True if the texts differ at most in small and large letters.
inline bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](char c, char d) { return ascii_lower_case(c) == ascii_lower_case(d); });
}

}  // namespace strata
