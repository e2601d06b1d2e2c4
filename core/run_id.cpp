#include "core/run_id.h"

#include <fmt/ranges.h>
#include <sys/random.h>

#include <array>
#include <cstdint>

#include "core/check.h"

namespace strata {

std::string make_run_id() {
  std::array<std::uint8_t, 8> bytes{};
  STRATA_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

bool is_run_id(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace strata
