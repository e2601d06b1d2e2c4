// Lower case of the 26 ASCII letters, independent of the locale; all other bytes stay.
#pragma once

#include <string>

namespace strata {

constexpr char ascii_lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string ascii_lower_case(std::string text) {
  for (char& c : text) c = ascii_lower_case(c);
  return text;
}

}  // namespace strata
