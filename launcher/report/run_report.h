// What mlaunch says when the ranks have ended: which rank failed and why, or why the run ended.
#pragma once

#include <chrono>
#include <string>

#include "launcher/command/run.h"
#include "launcher/control/coordinator.h"

namespace strata::launcher {

/// Returns the lines, without a newline at the end, once no rank of the attempt is left; "": there
/// is nothing to say.
std::string attempt_text(const Run& run, const AttemptReport& report);

/// Returns the file report.txt: `text`, which is that of attempt_text(), with what is on the screen
/// elsewhere: when it was, what `hang_report` said (may be empty), and what came of it.
std::string report_file(const Run& run, const AttemptReport& report, const std::string& text,
                        const std::string& hang, std::chrono::system_clock::time_point ended_at);

}  // namespace strata::launcher
