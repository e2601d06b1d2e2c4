#include "train/config/settings.h"

#include <charconv>
#include <cmath>

#include "core/ascii.h"

namespace strata::train {

std::string_view name_of(Origin origin) {
  constexpr std::string_view kNames[] = {
      "default", "default for a stored model", "auto", "planned", "file", "command line"};
  return kNames[static_cast<int>(origin)];
}

bool parse_number(std::string_view text, double& number) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end && std::isfinite(number);
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : std::string(between)) + part;
  return text;
}

bool same_word(std::string_view a, std::string_view b) {
  double x = 0, y = 0;
  if (parse_number(a, x) && parse_number(b, y)) return x == y;
  return same_letters(a, b);
}

}  // namespace strata::train
