// Which sums travel between hosts in a reduce_scatter. The ranks of a host are leaves of the tree
// of sums (design 5) next to one another; a host adds up the largest aligned subtrees that are
// wholly its own and sends these sums, since any other sum would change the bits of the result.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/host_layout.h"
#include "core/dtype.h"

namespace strata::comm {

/// An aligned subtree: its leaves are ranks [first, first + leaves).
struct Subtree {
  int first = 0;
  int leaves = 0;
  bool operator==(const Subtree&) const = default;
};

/// Returns the largest aligned subtrees of the tree of `world` leaves that cover ranks [begin,
/// end), in order. The last one of the world may lack leaves.
std::vector<Subtree> largest_subtrees(int begin, int end, int world);
/// The same of the ranks of one host, and of all hosts.
std::vector<Subtree> subtrees_of(const HostLayout& layout, int host);
std::vector<Subtree> subtrees_of(const HostLayout& layout);

/// Returns the subtrees of several leaves of a host: the sums that it makes of each piece.
std::vector<Subtree> made_sums(const HostLayout& layout, int host);
/// True if `rank` is a leaf of one of them.
bool covers(std::span<const Subtree> subtrees, int rank);

/// Returns the type in which a subtree's sum travels: a single contribution in the wire type, a sum
/// in fp32. Two contributions never are fewer bytes than their sum.
inline DType sum_type(const Subtree& subtree, DType wire_type) {
  return subtree.leaves == 1 ? wire_type : DType::f32;
}

/// Elements of a sum that travel as one message. While one is on its way the one before is added
/// up, from the cache that it came through.
inline constexpr std::int64_t kSumElementsPerMessage = std::int64_t{1} << 18;

/// The sum of a subtree of `from`'s host, over the piece that rank `to` of another host owns. A
/// single contribution is sent by its own rank, a sum by the counterpart of `to`.
struct PartialSum {
  int from = 0;
  int to = 0;
  Subtree subtree;
};

/// Returns what `rank` sends, or receives, in the order in which it does.
std::vector<PartialSum> sums_from(const HostLayout& layout, int rank);
std::vector<PartialSum> sums_to(const HostLayout& layout, int rank);

}  // namespace strata::comm
