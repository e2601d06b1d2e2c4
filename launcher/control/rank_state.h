// What a look at one rank tells of it: a copy of its status page, and whether its process may run.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "core/status_page.h"
#include "launcher/control/save_failure.h"

namespace strata::launcher {

/// What is shown of a rank, and decides nothing.
struct RankView {
  int process = -1;                                        ///< its number; -1: it has ended
  double phase_seconds = 0;                                ///< for which it has been in its phase
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< of its last step; NaN: none yet
  double tokens_per_second = 0;                            ///< of all ranks; 0: not known yet
  std::array<std::int64_t, 4> tier_bytes{};  ///< on the device, pinned, pageable, on disk
  std::optional<SaveFailure> save_failure = {};
  bool operator==(const RankView&) const = default;
};

struct RankState {
  int rank = 0;  ///< in the whole run
  Phase phase = Phase::starting;
  std::int64_t step = -1;   ///< -1: none
  std::uint64_t beats = 0;  ///< grows with whatever the rank gets done; 0: it writes no page
  std::chrono::nanoseconds quiet{0};  ///< it foresees to need so long without a beat
  std::int64_t collective = 0;        ///< number of the one begun last
  std::string collective_name = {};   ///< of the one under way; empty: none
  std::string where = {};             ///< for people: "step 12, backward, ..."
  std::int64_t committed = -1;        ///< step of the last checkpoint; -1: none
  std::string checkpoint = {};        ///< its folder
  bool ended = false;
  bool held = false;              ///< stopped by a signal, or in a frozen control group
  bool traced = false;            ///< a debugger is on it
  bool frozen = false;            ///< held, and by a control group
  std::uint64_t switches = 0;     ///< grows whenever it is stopped anew; 0: not known
  bool unread = false;            ///< its output is not read now, so that it may wait in a write
  std::int64_t work_ns = 0;       ///< in which it waited for no other rank; 0: not known
  std::int64_t worked_steps = 0;  ///< over which work_ns was added up
  RankView view = {};
  bool operator==(const RankState&) const = default;
};

}  // namespace strata::launcher
