// What people are shown of a rank, besides what control looks at.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "launcher/control/rank_state.h"

namespace strata::launcher {

struct RankView {
  RankState state;
  int process = -1;                                        ///< its number; -1: it has ended
  double phase_seconds = 0;                                ///< for which it has been in its phase
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< of its last step; NaN: none yet
  double tokens_per_second = 0;                            ///< of all ranks; 0: not known yet
  std::array<std::int64_t, 4> tier_bytes{};  ///< on the device, pinned, pageable, on disk
};

}  // namespace strata::launcher
