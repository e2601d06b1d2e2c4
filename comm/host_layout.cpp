#include "comm/host_layout.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/error.h"

namespace strata::comm {

int HostLayout::host_of(int rank) const {
  const auto after = std::upper_bound(first_ranks.begin(), first_ranks.end(), rank);
  return static_cast<int>(after - first_ranks.begin()) - 1;
}

std::vector<int> HostLayout::served_by(int rank) const {
  const int host = host_of(rank);
  std::vector<int> served;
  for (int peer = 0; peer < world; ++peer)
    if (host_of(peer) != host && counterpart(peer, host) == rank) served.push_back(peer);
  return served;
}

int HostLayout::count_served_by(int rank) const {
  const int host = host_of(rank), own = local(rank);
  int served = 0;
  for (int other = 0; other < hosts(); ++other)
    if (other != host && own < ranks(other)) served += (ranks(other) - own - 1) / ranks(host) + 1;
  return served;
}

void validate(const HostLayout& layout) {
  const std::vector<int>& first = layout.first_ranks;
  const bool rises =
      std::adjacent_find(first.begin(), first.end(), std::greater_equal<>{}) == first.end();
  if (first.empty() || first.front() != 0 || !rises || first.back() >= layout.world)
    throw InvalidArgument(
        fmt::format("the first ranks of {} hosts must be 0, then rise, below the {} ranks",
                    first.size(), layout.world));
}

}  // namespace strata::comm
