// Tells of attempts that did not end well: on the screen, and in files, which lie with the logs or,
// of failures without logs, in a place of the user's.
#pragma once

#include <chrono>
#include <string>

#include "launcher/command/run.h"
#include "launcher/control/coordinator.h"
#include "launcher/output/background_work.h"
#include "launcher/output/kept_reports.h"
#include "launcher/run_output.h"

namespace strata::launcher {

class AttemptReports {
 public:
  /// Borrows both.
  AttemptReports(const Run& run, RunOutput& output) : run_(run), output_(output) {}

  void tell(const AttemptReport& report);
  /// Keeps all reports of a run that gave up, and says where.
  void keep_all(const std::string& why);

 private:
  /// Files that have not been written when the run has ended are waited for so long.
  static constexpr std::chrono::milliseconds kAtTheEnd{5000};

  std::string keep(const std::string& name, const std::string& text);
  void say_once(bool& told, const std::string& text);
  [[nodiscard]] std::string last_output();

  const Run& run_;
  RunOutput& output_;
  std::string reports_;        ///< of all attempts
  bool failure_told_ = false;  ///< that files are not kept
  bool delay_told_ = false;    ///< that they are still being written
  const KeptReports kept_{KeptReports::place()};
  BackgroundWork files_{kAtTheEnd};  ///< heartbeats must not wait for the file system
};

}  // namespace strata::launcher
