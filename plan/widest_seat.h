// Finds the rank for which planning decides.
#pragma once

#include "comm/seat.h"

namespace strata::plan {

/// Returns `where` with the coordinates of the rank with the largest shards, the last one along the
/// data axis: a Plan that fits it fits all ranks, and all find the same one.
inline comm::MeshSeat widest_seat(comm::MeshSeat where) {
  const auto data = static_cast<std::size_t>(comm::MeshAxis::data);
  where.at.at[data] = where.mesh.sizes[data] - 1;
  return where;
}

}  // namespace strata::plan
