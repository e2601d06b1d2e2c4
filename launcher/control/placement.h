// Which ranks of an attempt run on which host: those of a host have consecutive numbers.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

namespace strata::launcher {

struct Placement {
  std::vector<int> slots{1};  ///< ranks of each host, at least 1
  int attempt = 0;            ///< 0: the first start of the run

  [[nodiscard]] int hosts() const { return static_cast<int>(slots.size()); }
  [[nodiscard]] int world() const { return first_rank(hosts()); }
  [[nodiscard]] int ranks_of(int host) const { return slots[static_cast<std::size_t>(host)]; }
  [[nodiscard]] int first_rank(int host) const {
    return std::accumulate(slots.begin(), slots.begin() + host, 0);
  }
  /// Returns the host of a rank.
  [[nodiscard]] int host_of(int rank) const {
    int host = 0;
    while (host + 1 < hosts() && first_rank(host + 1) <= rank) ++host;
    return host;
  }
  bool operator==(const Placement&) const = default;

  /// Returns the number of hosts, of the first `end`, that have a rank with this local number.
  [[nodiscard]] int hosts_with(int local_rank, int end) const {
    return static_cast<int>(std::count_if(slots.begin(), slots.begin() + end,
                                          [&](int ranks) { return ranks > local_rank; }));
  }
};

}  // namespace strata::launcher
