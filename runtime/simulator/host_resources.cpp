#include "runtime/simulator/host_resources.h"

namespace strata::runtime {

std::string_view name_of(HostResource resource) {
  constexpr std::array<std::string_view, kHostResources> kNames{
      "cores", "host memory",   "network out", "network in", "disk read", "disk write",
      "disk",  "device memory", "link up",     "link down",  "link"};
  return kNames[static_cast<std::size_t>(resource)];
}

}  // namespace strata::runtime
