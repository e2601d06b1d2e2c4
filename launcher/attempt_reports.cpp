#include "launcher/attempt_reports.h"

#include <fmt/core.h>

#include <chrono>
#include <optional>
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

}  // namespace

void AttemptReports::tell(const AttemptReport& report) {
  const auto ended_at = std::chrono::system_clock::now();
  LogFolder* logs = output_.logs();
  const bool keeps = logs == nullptr && is_failure(report);
  const std::string folder = fmt::format("attempt_{}/", report.attempt);
  const std::string json = report_json(run_, report, ended_at);
  const std::string text =
      attempt_text(run_, report, keeps ? keep(folder + "report.json", json) : "");
  if (text.empty()) return;
  output_.screen().say(text);
  const std::string file = report_file(run_, report, text, ended_at);
  reports_ += file + "\n";
  if (keeps) keep(folder + "report.txt", file);
  if (logs == nullptr) return;
  logs->keep_of_attempt("report.txt", file);
  logs->keep_of_attempt("report.json", json);
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
  std::optional<std::string> failure;
  bool is_there = false;
  try {
    const bool was_idle = files_.wait(std::chrono::milliseconds(0));
    files_.add([kept = kept_, run = run_.run_id, name, text] { kept.keep(run, name, text); });
    is_there = was_idle && files_.wait(kForAFile);
    failure = files_.take_complaint();
  } catch (const HostError& error) {
    failure = error.what();
  }
  if (failure) {
    say_once(failure_told_, "note: reports are not kept: " + *failure);
    return "";
  }
  if (!is_there)
    say_once(delay_told_, "note: " + path + " is still being written; is its file system slow?");
  return path;
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
