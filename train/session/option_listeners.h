// What options ask for beside the screen: metrics, breakdown, trace, profile, memory report.
#pragma once

#include <optional>

#include "train/run/training_run.h"
#include "train/session/breakdown_listener.h"
#include "train/session/memory_report_listener.h"
#include "train/session/metrics_listener.h"
#include "train/session/profile_listener.h"
#include "train/session/trace_listener.h"

namespace strata::train {

/// Their listeners, which live as long as the session: made before it.
class OptionListeners {
 public:
  /// Adds one rank's to `listeners`, which hear what these have to say, too. Borrows both.
  OptionListeners(const RunRequest& request, RunListeners& listeners);
  OptionListeners(const OptionListeners&) = delete;
  OptionListeners& operator=(const OptionListeners&) = delete;

 private:
  std::optional<MetricsListener> metrics_;
  std::optional<BreakdownListener> breakdown_;
  std::optional<TraceListener> trace_;
  std::optional<ProfileListener> profile_;
  std::optional<MemoryReportListener> memory_report_;
};

}  // namespace strata::train
