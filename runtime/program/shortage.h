// Describes too little memory as a value: what a Program needs at least of a tier that has less.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/graph/plan.h"

namespace strata::runtime {

struct Shortage {
  std::string program;  ///< name of the Program
  Tier tier = Tier::device;
  std::int64_t budget_bytes = 0;
  std::int64_t floor_bytes = 0;  ///< bytes needed if instructions run one after another
  TierBytes kept_bytes{};        ///< persistent bytes of each tier, part of both of the above
  bool operator==(const Shortage&) const = default;
};

/// Describes for people program, tier, budget, floor, what is kept, and what could be done.
std::string describe(const Shortage& shortage);

}  // namespace strata::runtime
