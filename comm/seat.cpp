#include "comm/seat.h"

#include "comm/host_layout.h"
#include "comm/hosts/partial_sums.h"

namespace strata::comm {
namespace {

/// Scratch of a reduce_scatter by messages: all contributions of this rank in the wire type, if
/// that differs, and from each of `peers` a contribution to this rank's piece.
std::int64_t message_bytes(const Seat& seat, const Collective& collective, int peers) {
  if (collective.kind != CollectiveKind::reduce_scatter) return 0;
  const std::int64_t element = size_of(collective.wire_type);
  const bool converts = collective.input_type != collective.wire_type;
  return (converts ? padded_piece(collective.partition.total() * element) : 0) +
         peers * padded_piece(collective.partition.count(seat.rank) * element);
}

/// Scratch among hosts: of a reduce_scatter, the sums that this rank makes and gets for its piece;
/// of an all_reduce, each host's sum at its leader.
std::int64_t hosts_bytes(const Seat& seat, const Collective& collective) {
  HostLayout layout{{0}, seat.ranks};
  if (!seat.first_ranks.empty()) layout.first_ranks = seat.first_ranks;
  validate(layout);
  const Partition& partition = collective.partition;
  if (collective.kind == CollectiveKind::all_reduce)
    return layout.local(seat.rank) == 0
               ? layout.hosts() * operand_bytes(collective, seat.rank).input
               : 0;
  if (collective.kind != CollectiveKind::reduce_scatter) return 0;
  std::int64_t bytes = 0;
  const auto add = [&](const PartialSum& sum) {
    bytes += padded_piece(partition.count(sum.to) *
                          size_of(sum_type(sum.subtree, collective.wire_type)));
  };
  for (const PartialSum& sum : sums_to(layout, seat.rank)) add(sum);
  for (const PartialSum& sum : sums_from(layout, seat.rank))
    if (sum.subtree.leaves > 1 || collective.input_type != collective.wire_type) add(sum);
  return bytes;
}

}  // namespace

std::int64_t workspace_bytes(const Seat& seat, const Collective& collective) {
  switch (seat.exchange) {
    case Exchange::none:
      return 0;
    case Exchange::peer_memory:
      return collective.kind == CollectiveKind::all_reduce
                 ? operand_bytes(collective, seat.rank).input
                 : 0;
    case Exchange::hosts:
      return hosts_bytes(seat, collective);
    case Exchange::messages:
      return message_bytes(seat, collective, seat.ranks - 1);
    case Exchange::native_messages:
      return message_bytes(seat, collective, 1);
    case Exchange::own_rounding:
      break;
  }
  const bool rounds = collective.kind == CollectiveKind::reduce_scatter &&
                      collective.wire_type != DType::f32 &&
                      collective.wire_type != collective.input_type;
  return rounds ? collective.partition.total() * size_of(collective.wire_type) : 0;
}

std::int64_t sent_bytes(const Seat& seat, const Collective& collective) {
  const int peers = seat.ranks - 1;
  const std::int64_t total = collective.partition.total();
  const std::int64_t mine = collective.partition.count(seat.rank);
  switch (collective.kind) {
    case CollectiveKind::all_gather:
      return mine * peers * size_of(collective.input_type);
    case CollectiveKind::reduce_scatter:
      return (total - mine) * size_of(collective.wire_type);
    case CollectiveKind::all_reduce:
    case CollectiveKind::broadcast:
      return total * peers * size_of(collective.input_type);
    default:
      return total * size_of(collective.input_type);
  }
}

}  // namespace strata::comm
