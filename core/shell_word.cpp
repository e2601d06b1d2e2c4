#include "core/shell_word.h"

#include <string_view>

namespace strata {
namespace {

constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./,:@%";

}  // namespace

std::string quoted_for_shell(const std::string& word) {
  std::string quoted = "'";
  for (const char letter : word)
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

std::string shell_word(const std::string& word) {
  const bool is_plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
  return is_plain ? word : quoted_for_shell(word);
}

}  // namespace strata
