// Makes the listeners that options ask for besides the screen: metrics, files of tools, breakdown,
// trace, profile, memory report.
#pragma once

#include <optional>

#include "train/run/training_run.h"
#include "train/session/breakdown_listener.h"
#include "train/session/memory_report_listener.h"
#include "train/session/metrics_listener.h"
#include "train/session/profile_listener.h"
#include "train/session/tool_logs_listener.h"
#include "train/session/trace_listener.h"

namespace strata::train {

/// Owns these listeners; must be constructed before the session and outlive it.
class OptionListeners {
 public:
  /// Adds one rank's listeners to `listeners`, which also hear what these have to say. Borrows
  /// both.
  OptionListeners(const RunRequest& request, RunListeners& listeners);
  OptionListeners(const OptionListeners&) = delete;
  OptionListeners& operator=(const OptionListeners&) = delete;

  /// Tells those that write what is known when a run fails, after it has been released. Of a
  /// Refused that comes while the run goes on, from another thread, they hear nothing.
  void tell(const Refused& refused);

 private:
  std::optional<MetricsListener> metrics_;
  std::optional<ToolLogsListener> tool_logs_;
  std::optional<BreakdownListener> breakdown_;
  std::optional<TraceListener> trace_;
  std::optional<ProfileListener> profile_;
  std::optional<MemoryReportListener> memory_report_;
};

}  // namespace strata::train
