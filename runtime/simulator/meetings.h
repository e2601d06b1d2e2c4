// The meetings of simulated ranks: a collective runs when all ranks along its axes have come to it.
#pragma once

#include <array>
#include <vector>

#include "comm/mesh.h"

namespace strata::runtime {

/// A rank takes part in one meeting at a time.
class Meetings {
 public:
  explicit Meetings(const comm::Mesh& mesh) : mesh_(mesh) {}

  /// All ranks that meet `rank` over `axes`, itself included, by their numbers there.
  const std::vector<int>& ranks(int rank, comm::AxisSet axes) { return group(rank, axes).ranks; }
  /// `rank` has come. True: it was the last.
  bool arrive(int rank, comm::AxisSet axes);
  /// The part of `rank` has ended. True: it was the last.
  bool end_part(int rank, comm::AxisSet axes);

 private:
  struct Group {
    std::vector<int> ranks;
    std::size_t arrived = 0, ended = 0;
  };
  struct OfAxes {
    std::vector<int> group_of;  ///< by rank; empty: nobody has met over these axes yet
    std::vector<Group> groups;
  };
  Group& group(int rank, comm::AxisSet axes);
  void find_groups(comm::AxisSet axes);

  comm::Mesh mesh_;
  std::array<OfAxes, comm::kAxisSets> by_axes_;
};

}  // namespace strata::runtime
