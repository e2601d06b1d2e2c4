#include "train/config/template_token.h"

#include <algorithm>
#include <cctype>

namespace strata::train {
namespace {

bool is_name(std::string_view word) {
  return std::ranges::all_of(word,
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

bool is_between(std::string_view word, std::string_view before, std::string_view after) {
  return word.size() > before.size() + after.size() && word.starts_with(before) &&
         word.ends_with(after);
}

/// True for a placeholder in capitals (`MODEL_PATH`); shorter words than 3 letters may be values.
bool is_shouted(std::string_view word) {
  constexpr std::ptrdiff_t kFewest = 3;
  const auto upper = [](unsigned char c) { return std::isupper(c) != 0; };
  return std::ranges::count_if(word, upper) >= kFewest && upper(word.front()) &&
         std::ranges::all_of(
             word, [&](unsigned char c) { return upper(c) || std::isdigit(c) != 0 || c == '_'; });
}

/// Returns the text up to the end of a value.
std::string_view word_at(std::string_view text) {
  const std::size_t braces = text.starts_with("{{") ? text.find("}}") : std::string_view::npos;
  if (braces != std::string_view::npos) return text.substr(0, braces + 2);
  const std::size_t end =
      text.starts_with("${") ? text.find('}') : text.find_first_of(",]} \t\r\n");
  if (end == std::string_view::npos) return text;
  return text.substr(0, text.starts_with("${") ? end + 1 : end);
}

}  // namespace

bool is_template_token(std::string_view word) {
  if (word.empty()) return false;
  if (is_between(word, "{{", "}}") || is_between(word, "${", "}") || is_between(word, "<", ">"))
    return true;
  if (is_between(word, "%", "%") || is_between(word, "@", "@"))
    return is_name(word.substr(1, word.size() - 2));
  if (word.front() == '$') return word.size() > 1 && is_name(word.substr(1));
  return is_shouted(word);
}

std::vector<std::string> bare_template_tokens(std::string_view text) {
  std::vector<std::string> tokens;
  int line = 1;
  char before = 0;  // the last character that is neither space nor comment
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view rest = text.substr(i);
    if (c == '\n') ++line;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) continue;
    if (c == '#' || rest.starts_with("//")) {
      i = std::min(text.find('\n', i), text.size()) - 1;
      continue;
    }
    if (rest.starts_with("/*")) {
      const std::size_t end = std::min(text.find("*/", i + 2), text.size());
      line += static_cast<int>(std::ranges::count(text.substr(i, end - i), '\n'));
      i = end + 1;
      continue;
    }
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\') ++i;
    } else if (before == ':' || before == '[' || before == ',') {
      const std::string_view word = word_at(rest);
      if (is_template_token(word)) {
        tokens.push_back(std::to_string(line) + ": " + std::string(word));
        i += word.size() - 1;
      }
    }
    before = c;
  }
  return tokens;
}

}  // namespace strata::train
