#include "launcher/command/command_text.h"

#include <algorithm>

#include "core/shell_word.h"

namespace strata::launcher {

std::string command_text(const std::vector<std::string>& words) {
  std::string text = "mlaunch";
  for (const std::string& word : words) text += " " + shell_word(word);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace strata::launcher
