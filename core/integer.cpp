#include "core/integer.h"

#include <charconv>

namespace strata {

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped_at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped_at != end) return std::nullopt;
  return value;
}

}  // namespace strata
