#include "runtime/graph/tier.h"

namespace strata::runtime {

std::string_view name_of(Tier tier) {
  constexpr std::string_view kNames[] = {"device", "pinned", "pageable", "disk"};
  return kNames[static_cast<int>(tier)];
}

}  // namespace strata::runtime
