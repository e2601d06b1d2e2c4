#include "launcher/attempt_reports.h"

#include <chrono>

#include "launcher/report/report_json.h"
#include "launcher/report/run_report.h"

namespace strata::launcher {

void AttemptReports::tell(const AttemptReport& report) {
  const std::string text = attempt_text(run_, report);
  if (text.empty()) return;
  output_.screen().say(text);
  LogFolder* logs = output_.logs();
  if (logs == nullptr) return;
  const auto ended_at = std::chrono::system_clock::now();
  const std::string file = report_file(run_, report, text, hang_, ended_at);
  reports_ += file + "\n";
  logs->keep_of_attempt("report.txt", file);
  logs->keep_of_attempt("report.json", report_json(run_, report, ended_at));
}

void AttemptReports::tell_hang(const std::string& text) {
  output_.screen().say(text);
  if (LogFolder* logs = output_.logs()) logs->keep_of_attempt("hang.txt", text + "\n");
  hang_ = text;
}

void AttemptReports::keep_all(const std::string& why) {
  LogFolder* logs = output_.logs();
  if (logs == nullptr)
    return output_.say("mlaunch --log-dir DIR keeps what ranks print and the reports of attempts");
  logs->keep_of_run("gave_up.txt", why + "\n\n" + reports_);
  output_.say("see " + logs->path());
}

}  // namespace strata::launcher
