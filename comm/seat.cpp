#include "comm/seat.h"

#include <fmt/core.h>

#include <algorithm>

#include "comm/partial_sums.h"
#include "comm/sum_steps.h"
#include "core/error.h"
#include "kernels/cpu/ordered_sum.h"

namespace strata::comm {
namespace {

/// Bytes of all contributions of a rank in the wire type, if that differs.
std::int64_t rounded_bytes(const Collective& collective) {
  if (collective.input_type == collective.wire_type) return 0;
  return padded_piece(collective.partition.total() * size_of(collective.wire_type));
}

/// Scratch of a reduce_scatter by messages: rounded contributions, and from each of `peers` a
/// contribution to this rank's piece.
std::int64_t message_bytes(const Seat& seat, const Collective& collective, int peers) {
  if (collective.kind != CollectiveKind::reduce_scatter) return 0;
  return rounded_bytes(collective) + peers * padded_piece(collective.partition.count(seat.rank) *
                                                          size_of(collective.wire_type));
}

/// Scratch of a reduce_scatter over hosts: the most that any rank needs for pieces as wide as the
/// widest one, so that a Plan that fits one rank fits all.
class ScratchOverHosts {
 public:
  ScratchOverHosts(const HostLayout& layout, const Collective& collective)
      : collective_(collective), layout_(layout) {
    std::int64_t widest = 0;
    for (int rank = 0; rank < layout.world; ++rank)
      widest = std::max(widest, collective.partition.count(rank));
    sum_bytes_ = padded_piece(widest * size_of(DType::f32));
    contribution_bytes_ = padded_piece(widest * size_of(collective.wire_type));
    for (int host = 0; host < layout.hosts(); ++host) {
      hosts_.push_back(of_host(host));
      travelling_bytes_ += hosts_.back().travelling_bytes;
    }
  }

  /// Where ranks of a host read one another's memory: sums that a rank makes and gets, and
  /// contributions that it rounds for other hosts.
  [[nodiscard]] std::int64_t of_memory() const {
    const bool converts = collective_.input_type != collective_.wire_type;
    return most([&](const OfHost& host, bool adds, std::int64_t served) {
      const int abroad = layout_.world - host.ranks;
      return served * host.sums * sum_bytes_ +
             (converts && !adds ? abroad * contribution_bytes_ : 0) + received_bytes(host);
    });
  }

  /// Where they exchange messages: contributions to what a rank adds up, for its host and for
  /// itself, sums that it makes and gets, and what sum_steps keep in between.
  [[nodiscard]] std::int64_t of_messages() const {
    const int slots = sum_steps(subtrees_of(layout_), layout_.world, collective_.wire_type).slots;
    return slots * sum_bytes_ + most([&](const OfHost& host, bool adds, std::int64_t served) {
             const int others = host.adding - (adds ? 1 : 0);
             return (host.ranks - 1 + served * others) * contribution_bytes_ +
                    (1 + served) * host.sums * sum_bytes_ + received_bytes(host);
           });
  }

 private:
  struct OfHost {
    int ranks = 0;
    int sums = 0;                             ///< made_sums
    int adding = 0;                           ///< ranks that these cover
    int first_adding = -1, first_alone = -1;  ///< first rank of either kind; -1: none
    std::int64_t travelling_bytes = 0;        ///< of what it sends of one piece
  };

  [[nodiscard]] OfHost of_host(int host) const {
    OfHost of{.ranks = layout_.ranks(host)};
    for (const Subtree& subtree : subtrees_of(layout_, host)) {
      const bool adds = subtree.leaves > 1;
      of.sums += adds ? 1 : 0;
      of.adding += adds ? subtree.leaves : 0;
      of.travelling_bytes += adds ? sum_bytes_ : contribution_bytes_;
      int& first = adds ? of.first_adding : of.first_alone;
      if (first < 0) first = subtree.first;
    }
    return of;
  }

  [[nodiscard]] std::int64_t received_bytes(const OfHost& host) const {
    return travelling_bytes_ - host.travelling_bytes;
  }

  /// Returns the largest of bytes(host, whether a rank is in a sum of its host, number of ranks
  /// that it serves). Of ranks of one kind the first serves the most.
  template <typename Bytes>
  [[nodiscard]] std::int64_t most(const Bytes& bytes) const {
    std::int64_t most = 0;
    for (const OfHost& host : hosts_)
      for (const int rank : {host.first_adding, host.first_alone})
        if (rank >= 0)
          most =
              std::max(most, bytes(host, rank == host.first_adding, layout_.count_served_by(rank)));
    return most;
  }

  const Collective& collective_;
  const HostLayout& layout_;
  std::int64_t sum_bytes_ = 0;
  std::int64_t contribution_bytes_ = 0;
  std::vector<OfHost> hosts_;
  std::int64_t travelling_bytes_ = 0;  ///< of all hosts
};

/// Scratch of hosts whose ranks read one another's memory. An all_reduce needs each host's sum.
std::int64_t hosts_bytes(const Seat& seat, const Collective& collective) {
  const HostLayout layout = layout_of(seat);
  if (collective.kind == CollectiveKind::all_reduce)
    return layout.hosts() * operand_bytes(collective, seat.rank).input;
  if (collective.kind != CollectiveKind::reduce_scatter) return 0;
  return ScratchOverHosts(layout, collective).of_memory();
}

std::int64_t host_message_bytes(const Seat& seat, const Collective& collective) {
  if (collective.kind != CollectiveKind::reduce_scatter) return 0;
  return rounded_bytes(collective) + ScratchOverHosts(layout_of(seat), collective).of_messages();
}

}  // namespace

HostLayout layout_of(const Seat& seat) {
  HostLayout layout{{0}, seat.ranks};
  if (!seat.first_ranks.empty()) layout.first_ranks = seat.first_ranks;
  validate(layout);
  return layout;
}

void require_sums(const Seat& seat) {
  const bool one_level =
      seat.exchange == Exchange::peer_memory || seat.exchange == Exchange::messages;
  const bool two_levels =
      seat.exchange == Exchange::hosts || seat.exchange == Exchange::host_messages;
  if (!one_level && !two_levels) return;
  const HostLayout layout = layout_of(seat);
  int added = one_level ? seat.ranks : 0;
  for (int host = 0; two_levels && host < layout.hosts(); ++host)
    added = std::max(added, layout.ranks(host));
  if (added <= kernels::kMaxContributions) return;
  throw ConfigError(fmt::format(
      "{} ranks {} add gradients together, and at most {} can: start fewer on a host (-np), or "
      "ranks on several hosts by mlaunch (--hostfile, --nnodes; plan --hosts), whose hosts add "
      "their "
      "own first",
      added, two_levels ? "of one host" : "in one level", kernels::kMaxContributions));
}

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
    case Exchange::host_messages:
      return host_message_bytes(seat, collective);
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
