#include "runtime/chain/chain_options.h"

#include <cstddef>

namespace strata::runtime {
namespace {

bool needs_at_most(const ChainOption& a, const ChainOption& b) {
  return a.kept_bytes <= b.kept_bytes && a.host_bytes <= b.host_bytes &&
         a.disk_bytes <= b.disk_bytes && a.recompute_ns <= b.recompute_ns &&
         a.working_bytes <= b.working_bytes;
}

}  // namespace

std::vector<int> undominated_options(const std::vector<ChainOption>& options) {
  std::vector<int> remaining;
  for (std::size_t i = 0; i < options.size(); ++i) {
    bool dominated = false;
    for (std::size_t j = 0; j < options.size() && !dominated; ++j)
      dominated =
          j != i && needs_at_most(options[j], options[i]) && (j < i || options[j] != options[i]);
    if (!dominated) remaining.push_back(static_cast<int>(i));
  }
  return remaining;
}

}  // namespace strata::runtime
