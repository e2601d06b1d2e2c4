// Holds what is known of each byte of an arena or a root, by stretches that have it in common.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace strata::runtime {

/// Holds disjoint stretches, keyed by begin; a stretch ends where the next begins.
template <typename Known>
class Stretches {
 public:
  /// Calls visitor(Known&) for the stretches of [begin, end), in order.
  template <typename Visit>
  void visit(std::int64_t begin, std::int64_t end, const Visit& visitor) {
    if (begin >= end) return;
    const auto from = split(begin), to = split(end);
    for (auto at = from; at != to; ++at) visitor(at->second);
  }

 private:
  typename std::map<std::int64_t, Known>::iterator split(std::int64_t at) {
    const auto next = stretches_.lower_bound(at);
    if (next != stretches_.end() && next->first == at) return next;
    return stretches_.emplace_hint(next, at, std::prev(next)->second);
  }

  std::map<std::int64_t, Known> stretches_{{0, Known{}}};
};

}  // namespace strata::runtime
