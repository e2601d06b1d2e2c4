// Who does what in collectives of GPUs on several hosts: within a host ranks send pieces to one
// another, and between hosts each byte that a host needs travels once (docs/adr/0022).
#pragma once

#include <map>
#include <vector>

#include "comm/host_layout.h"
#include "comm/partial_sums.h"
#include "comm/seat.h"
#include "comm/sum_steps.h"

namespace strata::comm {

/// The part of one rank. Does not change.
struct TwoLevels {
  explicit TwoLevels(const Seat& seat);

  /// True if some host has several ranks beside other hosts: one level does as well elsewhere.
  [[nodiscard]] bool needed() const { return layout.hosts() > 1 && layout.world > layout.hosts(); }
  [[nodiscard]] int first() const { return layout.first(host); }
  [[nodiscard]] int locals() const { return layout.ranks(host); }
  /// True if `peer`, which is on this host, contributes to the sum that the `adder` of this host
  /// makes of the piece of `owner`: a contribution alone goes to another host by itself.
  [[nodiscard]] bool contributes(int peer, int adder, int owner) const {
    return owner == adder || covers(sums, peer);
  }

  HostLayout layout;
  int host;
  std::vector<std::vector<int>> served;  ///< HostLayout::served_by, by rank on this host
  std::vector<std::vector<int>> adds;    ///< owners of the pieces that it adds up; itself first
  std::vector<Subtree> sums;             ///< made_sums of this host
  std::vector<Subtree> parts;            ///< subtrees of all hosts
  std::vector<PartialSum> outgoing;
  std::vector<PartialSum> incoming;
  std::map<DType, SumSteps> steps;  ///< by wire type
  std::size_t most_slots = 0;       ///< of all steps
};

}  // namespace strata::comm
