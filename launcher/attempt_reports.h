// Tells of attempts that did not end well: on the screen, and in files, which lie with the logs or,
// of failures without logs, in a place of the user's.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "launcher/command/run.h"
#include "launcher/control/coordinator.h"
#include "launcher/output/kept_reports.h"
#include "launcher/output/report_writers.h"
#include "launcher/run_output.h"

namespace strata::launcher {

class AttemptReports {
 public:
  /// Borrows both.
  AttemptReports(const Run& run, RunOutput& output) : run_(run), output_(output) {}

  void tell(const AttemptReport& report);
  /// Keeps all reports of a run that gave up, and says where.
  void keep_all(const std::string& why);

  /// Adds what to poll for: files that took long to write.
  void add_polls(std::vector<pollfd>& entries) const { writers_.add_polls(entries); }
  /// Says which of them could not be written.
  void work();
  /// Waits for the files that are still being written, for some seconds at most, and says which are
  /// missing.
  void finish();

 private:
  std::string keep(const std::string& name, const std::string& text);
  bool say_failures(const std::string& path);
  void say_of_all(const std::string& path, const std::string& why);
  void say_once(bool& told, const std::string& text);
  [[nodiscard]] std::string last_output();

  const Run& run_;
  RunOutput& output_;
  std::string reports_;        ///< of all attempts
  bool failure_told_ = false;  ///< that files are not kept
  bool delay_told_ = false;    ///< that they are still being written
  const KeptReports kept_{KeptReports::place()};
  ReportWriters writers_;
};

}  // namespace strata::launcher
