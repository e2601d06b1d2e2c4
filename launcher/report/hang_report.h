// What mlaunch says when ranks get nowhere: which rank is behind, what holds it, and what to do.
#pragma once

#include <string>
#include <vector>

#include "launcher/control/hang_watch.h"
#include "launcher/group/process_state.h"
#include "launcher/report/evidence.h"

namespace strata::launcher {

/// Returns several lines without a newline at the end. `process`, `threads` and `stacks` (may be
/// empty) are those of the first rank that is behind.
std::string hang_report(const Hang& hang, const ProcessState& process,
                        const std::vector<ThreadFacts>& threads, const std::string& stacks);

}  // namespace strata::launcher
