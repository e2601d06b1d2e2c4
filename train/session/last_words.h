// Decides when a failing rank prints its error if no launcher prints one for all ranks.
#pragma once

#include <chrono>
#include <string>

#include "core/error.h"
#include "core/rank_context.h"
#include "core/status_page.h"
#include "train/session/console.h"

namespace strata::train {

/// Time that a rank which failed with `code` in `phase` waits before it prints its error and ends.
///
/// Errors in the command line, a setting, a file or the machine occur on all ranks alike, before
/// they have met. So rank 0 prints its error at once; when it has ended, mpirun ends the others
/// before they print the same. Ranks that still live after their wait failed alone, and print
/// theirs, the lowest rank first. No error gets lost, and ranks need not agree on anything.
std::chrono::milliseconds wait_before_last_words(const RankContext& context, Phase phase,
                                                 ExitCode code);

/// Writes `message` to the status page, from which mlaunch prints it once for all ranks as the last
/// thing on the screen. Without mlaunch, prints it after the wait above.
void say_last_words(const RankContext& context, StatusPage& status, ExitCode code,
                    const std::string& message, Console& console);

}  // namespace strata::train
