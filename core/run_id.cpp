#include "core/run_id.h"

#include <sys/random.h>

#include <array>
#include <cstdint>

#include "core/check.h"

namespace strata {

std::string make_run_id() {
  std::array<std::uint8_t, 8> bytes{};
  STRATA_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace strata
