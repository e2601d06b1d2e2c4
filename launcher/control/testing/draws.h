// What chance decides in a simulated run: equal seeds give equal draws on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "launcher/control/testing/virtual_time.h"

namespace strata::launcher::simulation {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U + 1) {}

  /// Both ends are among what can be drawn.
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(most - least + 1));
  }
  Duration between(Duration least, Duration most) {
    return Duration(between(least.count(), most.count()));
  }
  bool chance(int percent) { return between(0, 99) < percent; }
  template <typename T>
  const T& one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(
        between(0, static_cast<std::int64_t>(values.size()) - 1))];
  }

 private:
  /// SplitMix64.
  std::uint64_t next() {
    std::uint64_t bits = state_ += 0x9e3779b97f4a7c15U;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31);
  }
  std::uint64_t state_;
};

}  // namespace strata::launcher::simulation
