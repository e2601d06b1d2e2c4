#include "train/session/option_listeners.h"

#include <functional>

namespace strata::train {

OptionListeners::OptionListeners(const RunRequest& request, RunListeners& listeners) {
  const TrainOptions& options = request.config.options;
  const int rank = request.context.rank;
  if (rank == 0 && !options.metrics.empty())
    listeners.add(std::ref(metrics_.emplace(options.metrics, listeners)));
  if (rank == 0 && !log_sinks(options).empty())
    listeners.add(std::ref(tool_logs_.emplace(options, listeners)));
  if (rank == 0 && options.wall_clock_breakdown)
    listeners.add(std::ref(breakdown_.emplace(listeners)));
  if (!options.trace.empty())
    listeners.add(std::ref(trace_.emplace(
        options.trace, runtime::TraceSteps{options.trace_steps.first, options.trace_steps.last},
        listeners)));
  if (!options.profile.empty()) listeners.add(std::ref(profile_.emplace(options, listeners)));
  if (rank == 0 && !options.memory_report.empty())
    listeners.add(std::ref(memory_report_.emplace(request, listeners)));
}

void OptionListeners::tell(const Refused& refused) {
  if (metrics_) metrics_->tell_missing();
  if (tool_logs_) tool_logs_->tell_missing();
  if (memory_report_) memory_report_->tell(refused);
}

}  // namespace strata::train
