// What mlaunch says last: which rank failed and why, or why the run ended.
#pragma once

#include <cstdint>
#include <optional>

#include "launcher/rank_group.h"
#include "launcher/run.h"
#include "launcher/screen.h"
#include "launcher/state_machine.h"

namespace strata::launcher {

/// Says it on the screen, once no rank is left. `out_of_memory_kills`: by the kernel of this
/// machine, during the run.
void report_run(const Run& run, const StateMachine& machine, const RankGroup& ranks,
                std::int64_t out_of_memory_kills, Screen& screen);

}  // namespace strata::launcher
