#include "launcher/attempt_reports.h"

#include <fmt/core.h>

#include <chrono>
#include <utility>

#include "core/error.h"
#include "launcher/report/report_json.h"
#include "launcher/report/run_report.h"

namespace strata::launcher {
namespace {

/// Bytes that are kept of the last lines of ranks, of a run that gave up.
constexpr std::size_t kLastOutputBytes = std::size_t{1} << 20;
/// Less than the leases of agents, which get no answers meanwhile.
constexpr std::chrono::milliseconds kForAFile{2000};
/// Files that have not been written when the run has ended are waited for so long.
constexpr std::chrono::milliseconds kAtTheEnd{5000};

}  // namespace

void AttemptReports::tell(const AttemptReport& report) {
  if (!is_worth_words(run_, report)) return;
  const auto ended_at = std::chrono::system_clock::now();
  const bool has_failed = is_failure(report);
  const auto keep_it = [&](const std::string& name, const std::string& text) -> std::string {
    if (LogFolder* logs = output_.logs()) return logs->keep_of_attempt(report.attempt, name, text);
    return has_failed ? keep(fmt::format("attempt_{}/{}", report.attempt, name), text) : "";
  };
  const std::string kept = keep_it("report.json", report_json(run_, report, ended_at));
  const std::string text = attempt_text(run_, report, has_failed ? kept : "");
  output_.screen().say(text);
  const std::string file = report_file(run_, report, text, ended_at);
  reports_ += file + "\n";
  keep_it("report.txt", file);
}

void AttemptReports::keep_all(const std::string& why) {
  const std::string text = why + "\n\n" + reports_;
  if (LogFolder* logs = output_.logs()) {
    logs->keep_of_run("gave_up.txt", text);
    return output_.say("see " + logs->path());
  }
  keep("output.txt", last_output());
  if (const std::string path = keep("gave_up.txt", text); !path.empty()) output_.say("see " + path);
  output_.say("mlaunch --log-dir DIR also keeps all that ranks print");
}

/// Keeps a file of the run where there are no logs, and returns its path; "": it cannot be kept,
/// which is said once.
std::string AttemptReports::keep(const std::string& name, const std::string& text) {
  const std::string path = kept_.path_of(run_.run_id, name);
  if (path.empty()) return "";
  const bool was_idle = writers_.is_idle();
  try {
    writers_.start(path, run_.run_id, name, text);
  } catch (const HostError& error) {
    say_of_all(path, error.what());
    return "";
  }
  // Heartbeats must not wait for the file system long, nor for each file anew.
  const bool is_there = was_idle && writers_.wait(kForAFile);
  if (say_failures(path)) return "";
  if (!is_there)
    say_once(delay_told_, "note: " + path + " is still being written; is its file system slow?");
  return path;
}

void AttemptReports::work() { (void)say_failures(""); }

/// Returns true if `path`, which has just been begun, is among the failures. What is wrong with a
/// file that was begun earlier is said of each: it was called kept.
bool AttemptReports::say_failures(const std::string& path) {
  bool is_among = false;
  for (const auto& [file, failure] : writers_.take_ended()) {
    if (failure.empty()) continue;
    if (file == path)
      say_of_all(path, failure);
    else
      output_.say(fmt::format("note: {} is not kept: {}", file, failure));
    is_among |= file == path;
  }
  return is_among;
}

void AttemptReports::finish() {
  (void)writers_.wait(kAtTheEnd);
  work();
  if (!writers_.is_idle())
    output_.say(fmt::format(
        "note: missing at the end: {}; what writes a file ends once its file system answers",
        writers_.unfinished()));
}

/// Says once that reports are not kept, for what is wrong with the first one most likely is with
/// all.
void AttemptReports::say_of_all(const std::string& path, const std::string& why) {
  say_once(failure_told_, fmt::format("note: reports are not kept: {}: {}", path, why));
}

void AttemptReports::say_once(bool& told, const std::string& text) {
  if (!std::exchange(told, true)) output_.say(text);
}

/// Returns what ranks of this host printed last, and mlaunch itself.
std::string AttemptReports::last_output() {
  std::string text;
  for (const OutputLine& line : output_.recent().last_of_each(kLastOutputBytes))
    text += (line.rank == OutputLine::kMlaunch ? "" : fmt::format("[{}] ", line.rank)) + line.text +
            "\n";
  return text;
}

}  // namespace strata::launcher
