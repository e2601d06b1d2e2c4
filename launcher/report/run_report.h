// What mlaunch says when the ranks have ended: which rank failed and why, or why the run ended.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "launcher/command/run.h"
#include "launcher/control/coordinator.h"

namespace strata::launcher {

/// True if there is something to say of the attempt.
bool is_worth_words(const Run& run, const AttemptReport& report);

/// Returns the lines, without a newline at the end, once no rank of the attempt is left, of one
/// that is worth words. `kept`: the file of the report for programs; "": not to be said.
std::string attempt_text(const Run& run, const AttemptReport& report, const std::string& kept);

/// Returns the file report.txt: `text`, which is that of attempt_text(), with what is on the screen
/// elsewhere: when it was, and what came of it; and details of the evidence, which are on none.
std::string report_file(const Run& run, const AttemptReport& report, const std::string& text,
                        std::chrono::system_clock::time_point ended_at);

/// Says what to do about the rank that hung or failed first; "": nobody knows, or there is none.
std::string advice_of(const Run& run, const AttemptReport& report);

struct FailedRank {
  int rank = 0;
  const AttemptReport::OfHost* host = nullptr;
  const EndedRank* ended = nullptr;  ///< null: its host has not told of it
};
/// Returns the rank that failed first, of an attempt that ended because of one. Of ranks that fail
/// together any may end first: their common error then names the one that it is of, as in
/// "rank 0: no space left".
FailedRank first_to_fail(const AttemptReport& report);

/// Returns all hosts if their ranks have told one error that is of no rank, so that none is to
/// blame alone; else nothing.
std::vector<std::string> hosts_that_failed_alike(const AttemptReport& report);

/// Returns the rank that hung or failed first, as far as there is one and its host has told of it.
const EndedRank* culprit(const AttemptReport& report);

/// Lists the ranks that were asked to end and did not, so that they had to be killed. Those that
/// failed by themselves are none.
std::vector<int> killed_ranks(const AttemptReport& report);
/// True if the user asked to kill ranks at once (Ctrl-C twice): they did not use up their time.
bool was_kill_asked(const AttemptReport& report);

/// True if something went wrong: the ranks have not all done their work, or stopped on request.
bool is_failure(const AttemptReport& report);

}  // namespace strata::launcher
