// When a failing rank says why, where no launcher says it for all ranks.
#pragma once

#include <chrono>
#include <string>

#include "core/error.h"
#include "core/rank_context.h"
#include "core/status_page.h"
#include "train/session/console.h"

namespace strata::train {

/// How long a rank that failed with `code` in `phase` waits before it prints its error and ends.
///
/// All ranks find errors in the command line, a setting, a file or the machine alike, before they
/// have met. So rank 0 speaks at once; when it has ended, mpirun ends the others, and they never
/// come to say the same. Ranks that still live after their wait failed alone and are heard, the
/// lowest first. No error can get lost, and nothing needs to be agreed with anybody.
std::chrono::milliseconds wait_before_last_words(const RankContext& context, Phase phase,
                                                 ExitCode code);

/// Writes `message` to the status page, of which mlaunch says it once for all ranks as the last
/// thing on the screen; without mlaunch prints it after the wait above.
void say_last_words(const RankContext& context, StatusPage& status, ExitCode code,
                    const std::string& message, Console& console);

}  // namespace strata::train
