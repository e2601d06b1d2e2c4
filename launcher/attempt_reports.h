// What is told of attempts that did not end well: on the screen, and in files where logs are kept.
#pragma once

#include <string>

#include "launcher/command/run.h"
#include "launcher/control/coordinator.h"
#include "launcher/run_output.h"

namespace strata::launcher {

class AttemptReports {
 public:
  /// Borrows both.
  AttemptReports(const Run& run, RunOutput& output) : run_(run), output_(output) {}

  void tell(const AttemptReport& report);
  /// Tells what holds ranks that hang.
  void tell_hang(const std::string& text);
  /// Keeps all reports of a run that gave up, or says how they could have been kept.
  void keep_all(const std::string& why);

 private:
  const Run& run_;
  RunOutput& output_;
  std::string reports_;  ///< of all attempts, if logs are kept
  std::string hang_;     ///< what was said of the last hang
};

}  // namespace strata::launcher
