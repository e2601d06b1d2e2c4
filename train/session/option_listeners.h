// What options ask for beside the screen: metrics, files of tools, breakdown, trace, profile.
#pragma once

#include <optional>

#include "train/config/options.h"
#include "train/session/breakdown_listener.h"
#include "train/session/metrics_listener.h"
#include "train/session/profile_listener.h"
#include "train/session/tool_logs_listener.h"
#include "train/session/trace_listener.h"

namespace strata::train {

/// Their listeners, which live as long as the session: made before it.
class OptionListeners {
 public:
  /// Adds one rank's to `listeners`, which hear what these have to say, too.
  OptionListeners(const TrainOptions& options, int rank, RunListeners& listeners);
  OptionListeners(const OptionListeners&) = delete;
  OptionListeners& operator=(const OptionListeners&) = delete;

 private:
  std::optional<MetricsListener> metrics_;
  std::optional<ToolLogsListener> tool_logs_;
  std::optional<BreakdownListener> breakdown_;
  std::optional<TraceListener> trace_;
  std::optional<ProfileListener> profile_;
};

}  // namespace strata::train
