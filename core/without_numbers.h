// Compares texts that differ in numbers alone: free bytes, attempts, ranks.
#pragma once

#include <string>
#include <string_view>

namespace strata {

/// Returns the text with each number in it replaced by one '#'.
inline std::string without_numbers(std::string_view text) {
  std::string result;
  bool in_number = false;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit)
      result += c;
    else if (!in_number)
      result += '#';
    in_number = is_digit;
  }
  return result;
}

}  // namespace strata
