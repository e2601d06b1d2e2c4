// A rank on axes of the mesh as planning sees it: values that say what its collectives need, so
// that nothing is planned with a communicator.
#pragma once

#include <cstdint>

#include "comm/collective.h"

namespace strata::comm {

/// How a backend brings the operands of collectives together, which decides what scratch they need.
enum class Exchange : std::uint8_t {
  none,             ///< a rank alone, or through memory that is not the Program's
  peer_memory,      ///< ranks read one another's operands (threads, shm)
  messages,         ///< pieces are sent, and added here (mpi, nccl)
  native_messages,  ///< pieces are sent, and the library adds them (nccl, Reduction::native)
  own_rounding,     ///< a rank alone on a device, which rounds its own contribution
};

struct Seat {
  int rank = 0;
  int ranks = 1;  ///< that communicate together
  Exchange exchange = Exchange::none;
  bool operator==(const Seat&) const = default;
};

/// A rank on the mesh as planning sees it.
struct MeshSeat {
  Mesh mesh;
  MeshPoint at;
  Exchange exchange = Exchange::none;  ///< on every axis

  /// Among the ranks that communicate over `axes`.
  [[nodiscard]] Seat on(AxisSet axes) const {
    return {rank_of(mesh, at, axes), mesh.ranks(axes), exchange};
  }
  /// Places a seat in the world on a mesh that has the data axis alone.
  static MeshSeat of(const Seat& world) {
    const Mesh mesh = data_mesh(world.ranks);
    return {mesh, point_of(mesh, world.rank), world.exchange};
  }
  bool operator==(const MeshSeat&) const = default;
};

/// Bytes of scratch that the collective needs on this rank.
std::int64_t workspace_bytes(const Seat& seat, const Collective& collective);

/// Bytes that this rank sends for it.
std::int64_t sent_bytes(const Seat& seat, const Collective& collective);

/// Pieces of a workspace start at multiples of a cache line.
constexpr std::int64_t padded_piece(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace strata::comm
