#include "core/version.h"

#include <fmt/core.h>

namespace strata {

std::string_view version() { return STRATA_VERSION; }

std::string version_text(std::string_view program) {
  return fmt::format("{} (Strata) {}", program, version());
}

}  // namespace strata
