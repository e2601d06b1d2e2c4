#include "runtime/simulator/meetings.h"

#include <map>
#include <utility>

namespace strata::runtime {

Meetings::Group& Meetings::group(int rank, comm::AxisSet axes) {
  OfAxes& of = by_axes_[axes.index()];
  if (of.group_of.empty()) find_groups(axes);
  return of.groups[static_cast<std::size_t>(of.group_of[static_cast<std::size_t>(rank)])];
}

void Meetings::find_groups(comm::AxisSet axes) {
  OfAxes& of = by_axes_[axes.index()];
  std::map<decltype(comm::MeshPoint::at), int> numbers;  // by where the ranks stand on other axes
  for (int rank = 0; rank < mesh_.ranks(); ++rank) {
    const comm::MeshPoint point = point_of(mesh_, rank);
    comm::MeshPoint elsewhere = point;
    for (int axis = 0; axis < comm::kMeshAxes; ++axis)
      if (axes.has(static_cast<comm::MeshAxis>(axis)))
        elsewhere.at[static_cast<std::size_t>(axis)] = 0;
    const auto [at, fresh] = numbers.try_emplace(elsewhere.at, static_cast<int>(of.groups.size()));
    if (fresh) of.groups.emplace_back();
    std::vector<int>& ranks = of.groups[static_cast<std::size_t>(at->second)].ranks;
    const auto number = static_cast<std::size_t>(rank_of(mesh_, point, axes));
    if (ranks.size() <= number) ranks.resize(number + 1);
    ranks[number] = rank;
    of.group_of.push_back(at->second);
  }
}

bool Meetings::arrive(int rank, comm::AxisSet axes) {
  Group& of = group(rank, axes);
  if (++of.arrived < of.ranks.size()) return false;
  of.arrived = 0;
  return true;
}

bool Meetings::end_part(int rank, comm::AxisSet axes) {
  Group& of = group(rank, axes);
  if (++of.ended < of.ranks.size()) return false;
  of.ended = 0;
  return true;
}

}  // namespace strata::runtime
