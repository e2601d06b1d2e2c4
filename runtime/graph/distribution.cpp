#include "runtime/graph/distribution.h"

#include <fmt/core.h>

namespace strata::runtime {

using kernels::Spread;

Distribution over_data(Spread spread) {
  Distribution distribution;
  distribution.along(comm::MeshAxis::data) = spread;
  return distribution;
}

std::string to_string(Spread spread, comm::MeshAxis axis) {
  constexpr const char* kNames[] = {"replicated", "sharded", "partial_sum", "zeros"};
  std::string text = std::string(kNames[static_cast<int>(spread.kind)]) + "(";
  if (spread.kind == Spread::Kind::sharded) text += fmt::format("{}, ", spread.dimension);
  return text + std::string(name_of(axis)) + ")";
}

std::string to_string(const Distribution& distribution) {
  std::string text;
  for (int i = 0; i < comm::kMeshAxes; ++i) {
    const auto axis = static_cast<comm::MeshAxis>(i);
    const Spread spread = distribution.along(axis);
    if (spread != kernels::kReplicated) text += " " + to_string(spread, axis);
  }
  return text;
}

}  // namespace strata::runtime
