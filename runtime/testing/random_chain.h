// Chains for tests, drawn by seed.
#pragma once

#include <cstdint>

#include "runtime/chain/chain.h"

namespace strata::runtime {

struct RandomChainShape {
  int least_blocks = 2, most_blocks = 5;
  int least_options = 2, most_options = 5;
};

/// Numbers of all sizes beside one another: small ones, so that rounding shows, and those of
/// models. With or without a disk, bounded host memory, bases that rise or fall along the chain.
Chain random_chain(std::uint64_t seed, const RandomChainShape& shape = {});

/// The fastest of all choices, tried one by one.
struct BruteForce {
  bool fits = false;
  std::int64_t extra_ns = 0;
  std::int64_t floor_bytes = -1;  ///< of all choices that host memory and engines allow
};
BruteForce try_all_choices(const Chain& chain);

}  // namespace strata::runtime
