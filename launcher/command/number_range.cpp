#include "launcher/command/number_range.h"

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/integer.h"

namespace strata::launcher {

NumberRange parse_range(const std::string& option, const std::string& text, int lowest,
                        int highest) {
  const std::string_view all(text);
  const std::size_t colon = all.find(':');
  const std::optional<std::int64_t> least = parse_integer(all.substr(0, colon));
  const std::optional<std::int64_t> most =
      colon == std::string_view::npos ? least : parse_integer(all.substr(colon + 1));
  if (least && most && *most < *least)
    throw InvalidArgument(
        fmt::format("{} {}: MIN {} is above MAX {}", option, text, *least, *most));
  if (!least || !most || *least < lowest || *most > highest)
    throw InvalidArgument(
        fmt::format("{} {}: expected a number from {} to {}, or two of them as MIN:MAX", option,
                    text, lowest, highest));
  return {static_cast<int>(*least), static_cast<int>(*most)};
}

}  // namespace strata::launcher
