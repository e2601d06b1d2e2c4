// A rank on axes of the mesh as planning sees it: values that say what its collectives need, so
// that planning needs no communicator.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collective.h"
#include "comm/host_layout.h"

namespace strata::comm {

/// The way in which a backend brings operands together, which decides the scratch of collectives.
enum class Exchange : std::uint8_t {
  none,             ///< a single rank, or through memory outside the Program
  peer_memory,      ///< ranks read one another's operands (threads, shm)
  hosts,            ///< so within a host; partial sums are sent between hosts (hosts)
  messages,         ///< pieces are sent, and Strata adds them (mpi, nccl)
  host_messages,    ///< so within a host; partial sums are sent between hosts (nccl)
  native_messages,  ///< pieces are sent, and the library adds them (nccl, Reduction::native)
  own_rounding,     ///< a single rank on a device, which rounds its own contribution
};

struct Seat {
  int rank = 0;
  int ranks = 1;  ///< number of ranks that communicate together
  Exchange exchange = Exchange::none;
  /// First rank of each host; empty: all are on one, or nobody said.
  std::vector<int> first_ranks{};
  bool operator==(const Seat&) const = default;
};

/// The place of a rank on the whole mesh, as planning sees it.
struct MeshSeat {
  Mesh mesh;
  MeshPoint at;
  Exchange exchange = Exchange::none;  ///< the same on every axis
  std::vector<int> first_ranks{};      ///< as in the world's Seat

  /// Returns this rank's seat among those that communicate over `axes`: all ranks, or it alone.
  [[nodiscard]] Seat on(AxisSet axes) const {
    const int ranks = mesh.ranks(axes);
    return {rank_of(mesh, at, axes), ranks, exchange, ranks > 1 ? first_ranks : std::vector<int>{}};
  }
  /// Places a seat in the world on a mesh, by default one with the data axis alone.
  static MeshSeat of(const Seat& world, const Mesh& mesh) {
    return {mesh, point_of(mesh, world.rank), world.exchange, world.first_ranks};
  }
  static MeshSeat of(const Seat& world) { return of(world, data_mesh(world.ranks)); }
  bool operator==(const MeshSeat&) const = default;
};

/// Returns which ranks are on which host. Throws InvalidArgument for first ranks that cannot be.
HostLayout layout_of(const Seat& seat);

/// Throws ConfigError if sums of floats among these ranks would add more of them at a time than
/// kernels can (kernels::kMaxContributions): those of a host, or all where there is one level.
void require_sums(const Seat& seat);

/// Bytes of scratch that the collective needs on this rank.
std::int64_t workspace_bytes(const Seat& seat, const Collective& collective);

/// Bytes that this rank sends in the collective.
std::int64_t sent_bytes(const Seat& seat, const Collective& collective);

/// Rounds up to a cache line: pieces of a workspace begin at multiples of it.
constexpr std::int64_t padded_piece(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace strata::comm
