#include "core/too_few_bytes.h"

#include <fmt/core.h>

namespace strata {

std::string too_few_bytes(std::string_view text, std::int64_t bytes, std::string_view example,
                          std::string_view per) {
  const std::string_view amount = text.substr(0, text.find('/'));
  if (amount.find_first_not_of("0123456789.+ ") != amount.npos)
    return fmt::format("which is less than 1 MB{}", per);
  return fmt::format("which is {} {}{}; give a unit, such as {}", bytes,
                     bytes == 1 ? "byte" : "bytes", per, example);
}

}  // namespace strata
