// What mlaunch says when the ranks have ended: which rank failed and why, or why the run ended.
#pragma once

#include <chrono>
#include <string>

#include "launcher/command/run.h"
#include "launcher/control/coordinator.h"

namespace strata::launcher {

/// Returns the lines, without a newline at the end, once no rank of the attempt is left; "": there
/// is nothing to say. `kept`: the file of the report for programs; "": not to be said.
std::string attempt_text(const Run& run, const AttemptReport& report, const std::string& kept);

/// Returns the file report.txt: `text`, which is that of attempt_text(), with what is on the screen
/// elsewhere: when it was, and what came of it; and details of the evidence, which are on none.
std::string report_file(const Run& run, const AttemptReport& report, const std::string& text,
                        std::chrono::system_clock::time_point ended_at);

/// Says what to do about the rank that hung or failed first; "": nobody knows, or there is none.
std::string advice_of(const Run& run, const AttemptReport& report);

/// Returns the rank that hung or failed first, as far as there is one and its host has told of it.
const EndedRank* culprit(const AttemptReport& report);

/// True if something went wrong: the ranks have not all done their work, or stopped on request.
bool is_failure(const AttemptReport& report);

}  // namespace strata::launcher
