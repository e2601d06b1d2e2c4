#include "runtime/graph/queue.h"

namespace strata::runtime {

std::string_view name_of(Queue queue) {
  constexpr std::string_view kNames[] = {"compute",   "communication", "upload", "download",
                                         "disk read", "disk write",    "host"};
  return kNames[static_cast<int>(queue)];
}

}  // namespace strata::runtime
