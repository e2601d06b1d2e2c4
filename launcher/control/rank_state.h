// What a look at one rank tells of it.
#pragma once

namespace strata::launcher {

struct RankState {
  int rank = 0;
  bool operator==(const RankState&) const = default;
};

}  // namespace strata::launcher
