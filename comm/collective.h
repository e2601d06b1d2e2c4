// The description of a collective: plain data over byte ranges that names axes of the mesh, never
// "the world". Communicators execute it; Programs, traces and fingerprints read it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/mesh.h"
#include "core/dtype.h"

namespace strata::comm {

enum class CollectiveKind : std::uint8_t {
  all_gather,      ///< sends every rank's shard to every rank
  reduce_scatter,  ///< ordered fp32 sum of all contributions; each rank keeps its shard
  all_reduce,      ///< wrapping sum of int64 alone, exact in any order
  broadcast,       ///< sends from rank 0 of the axes
  all_to_all,
  send,
  receive,
  barrier,
};

std::string_view name_of(CollectiveKind kind);

/// Contiguous pieces of a flat space of elements, one per rank, in rank order: rank r owns
/// [bounds[r], bounds[r + 1]). Pieces may be empty; bounds[0] == 0.
struct Partition {
  std::vector<std::int64_t> bounds;

  [[nodiscard]] int ranks() const { return static_cast<int>(bounds.size()) - 1; }
  [[nodiscard]] std::int64_t total() const { return bounds.back(); }
  [[nodiscard]] std::int64_t begin(int rank) const { return bounds[rank]; }
  [[nodiscard]] std::int64_t count(int rank) const { return bounds[rank + 1] - bounds[rank]; }
  bool operator==(const Partition&) const = default;
};

/// One collective call. Meaning of `input` and `output` (n = partition total, mine = own piece):
///   all_gather      input: own piece [mine], output: whole [n];
///                   input may lie at its place in output
///   reduce_scatter  input: whole contribution [n] of input_type, output: own piece [mine] fp32;
///                   of fp32 contributions, output may lie at its place in input
///   all_reduce      input = output: int64 [n]
///   broadcast       input = output: [n], rank 0's content
///   all_to_all      input: [n], piece r goes to rank r;
///                   output: [ranks * mine], piece of rank s at s * mine
///   send, receive   input or output: [n], to or from rank `peer`; the two ranks meet (no
///                   buffering), nobody else takes part
/// `barrier` has neither input nor output.
/// Elements travel as `input_type`; `wire_type` and `scale` matter to reduce_scatter alone. Input
/// and output overlap only where this table says so. Pieces may be empty, their pointers then null.
/// Sums (design 5): each contribution, the owner's too, is rounded once to nearest even to
/// `wire_type`, added in fp32 in the binary tree over the next power of two with missing leaves
/// skipped, then multiplied by `scale`. So bits do not depend on the backend.
struct Collective {
  CollectiveKind kind = CollectiveKind::barrier;
  AxisSet axes = MeshAxis::data;  ///< axes of the ranks that take part
  DType input_type = DType::f32;
  DType wire_type = DType::f32;
  Partition partition;
  float scale = 1.0f;
  int peer = -1;  ///< send: destination; receive: source
};

/// Describes a collective: "reduce_scatter bf16 as fp32, 4096 elements over 4 ranks".
std::string describe(const Collective& collective);

/// Writes the description into `text`, truncated and NUL-terminated, and returns it; allocates
/// nothing. kDescriptionBytes are always enough.
inline constexpr std::size_t kDescriptionBytes = 160;
std::string_view describe_into(const Collective& collective, std::span<char> text);

/// Returns a hash that is equal on two ranks exactly when (barring collisions) they run the same
/// collective; a send and its receive count as the same.
std::uint64_t fingerprint(const Collective& collective);

/// Bytes that a rank reads and writes in a collective.
struct OperandBytes {
  std::int64_t input = 0;
  std::int64_t output = 0;
};
OperandBytes operand_bytes(const Collective& collective, int rank);

/// Throws InvalidArgument that names the wrong field when `collective` is not valid among `ranks`
/// ranks: a partition of another world, falling bounds, wrong types, no such peer, or a sum to
/// which a rank would add more than kernels::kMaxContributions at a time.
/// `added`: contributions that a rank adds at a time, those of its host where ranks of several
/// hosts sum in two levels.
void validate(const Collective& collective, int rank, int ranks, int added);
/// The same where a rank adds those of all ranks.
inline void validate(const Collective& collective, int rank, int ranks) {
  validate(collective, rank, ranks, ranks);
}

/// Returns an in-place sum of `elements` int64 values over `ranks`, which communicate over `axes`.
Collective integer_sum(std::int64_t elements, int ranks, AxisSet axes = MeshAxis::data);

}  // namespace strata::comm
