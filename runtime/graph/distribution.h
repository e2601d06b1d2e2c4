// Says how a value relates to the same value on the other ranks, axis by axis of the mesh.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "comm/mesh.h"
#include "kernels/ops/spread.h"

namespace strata::runtime {

struct Distribution {
  std::array<kernels::Spread, comm::kMeshAxes> spreads{};

  kernels::Spread& along(comm::MeshAxis axis) { return spreads[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] const kernels::Spread& along(comm::MeshAxis axis) const {
    return spreads[static_cast<std::size_t>(axis)];
  }
  bool operator==(const Distribution&) const = default;
};
/// Makes a distribution with `spread` along the data axis, replicated along all others.
Distribution over_data(kernels::Spread spread);

/// Examples: "replicated(data)", "sharded(0, data)", "partial_sum(data)", "zeros(data)".
std::string to_string(kernels::Spread spread, comm::MeshAxis axis);
/// Returns the same for each axis along which it is not replicated, with a space before each; "" if
/// there are none.
std::string to_string(const Distribution& distribution);

}  // namespace strata::runtime
