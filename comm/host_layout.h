// Which ranks are on which host.
#pragma once

#include <vector>

namespace strata::comm {

/// Ranks are numbered host by host. A value to copy.
struct HostLayout {
  std::vector<int> first_ranks{0};  ///< first rank of each host, rising, from 0
  int world = 1;

  [[nodiscard]] int hosts() const { return static_cast<int>(first_ranks.size()); }
  [[nodiscard]] int first(int host) const { return first_ranks[static_cast<std::size_t>(host)]; }
  [[nodiscard]] int end(int host) const { return host + 1 < hosts() ? first(host + 1) : world; }
  [[nodiscard]] int ranks(int host) const { return end(host) - first(host); }
  [[nodiscard]] int host_of(int rank) const;
  /// Returns the number of `rank` among the ranks of its host.
  [[nodiscard]] int local(int rank) const { return rank - first(host_of(rank)); }
  /// Returns the rank of `host` that takes what comes from `rank`, and sends what goes there, for
  /// all ranks of `host`: the one with the same number on its host, modulo the ranks of `host`.
  [[nodiscard]] int counterpart(int rank, int host) const {
    return first(host) + local(rank) % ranks(host);
  }
  /// Returns the ranks of other hosts whose counterpart is `rank`, in order.
  [[nodiscard]] std::vector<int> served_by(int rank) const;
  /// Returns how many they are. On one host, ranks with higher numbers serve no more than others.
  [[nodiscard]] int count_served_by(int rank) const;
  bool operator==(const HostLayout&) const = default;
};

/// Throws InvalidArgument unless the first rank is 0, first ranks rise and all are below `world`.
void validate(const HostLayout& layout);

}  // namespace strata::comm
