#include "launcher/command/command_text.h"

#include <algorithm>
#include <string_view>

namespace strata::launcher {
namespace {

constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./,:@%";

std::string quoted(const std::string& word) {
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string command_text(const std::vector<std::string>& words) {
  std::string text = "mlaunch";
  for (const std::string& word : words) text += " " + quoted(word);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace strata::launcher
