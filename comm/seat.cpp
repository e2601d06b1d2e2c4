#include "comm/seat.h"

#include <algorithm>

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

/// Scratch of the sums of one host's subtrees over one piece of `count` elements.
std::int64_t bytes_of_sums(const HostLayout& layout, int host, const Collective& collective,
                           std::int64_t count, bool sent_as_they_are) {
  std::int64_t bytes = 0;
  for (const Subtree& subtree :
       largest_subtrees(layout.first(host), layout.end(host), layout.world))
    if (subtree.leaves > 1 || !sent_as_they_are)
      bytes += padded_piece(count * size_of(sum_type(subtree, collective.wire_type)));
  return bytes;
}

/// Scratch among hosts, the largest of all ranks, so that a Plan that fits one fits all. Of a
/// reduce_scatter: the sums that a rank makes and gets; of an all_reduce: each host's sum.
std::int64_t hosts_bytes(const Seat& seat, const Collective& collective) {
  HostLayout layout{{0}, seat.ranks};
  if (!seat.first_ranks.empty()) layout.first_ranks = seat.first_ranks;
  validate(layout);
  if (collective.kind == CollectiveKind::all_reduce)
    return layout.hosts() * operand_bytes(collective, seat.rank).input;
  if (collective.kind != CollectiveKind::reduce_scatter) return 0;
  std::int64_t widest = 0;
  for (int rank = 0; rank < seat.ranks; ++rank)
    widest = std::max(widest, collective.partition.count(rank));
  const bool as_they_are = collective.input_type == collective.wire_type;
  std::int64_t most = 0;
  for (int host = 0; host < layout.hosts(); ++host) {
    const std::int64_t made = bytes_of_sums(layout, host, collective, widest, as_they_are);
    std::int64_t bytes = 0;
    for (int other = 0; other < layout.hosts(); ++other) {
      if (other == host) continue;
      const int served = (layout.ranks(other) + layout.ranks(host) - 1) / layout.ranks(host);
      bytes += served * made + bytes_of_sums(layout, other, collective, widest, false);
    }
    most = std::max(most, bytes);
  }
  return most;
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
