#include "train/run/log_sinks.h"

#include <filesystem>

namespace strata::train {
namespace {

void add_monitor(const MonitorOptions& monitor, LogFormat format, const std::string& section,
                 std::vector<LogSink>& sinks) {
  if (!monitor.enabled) return;
  const std::filesystem::path folder =
      std::filesystem::path(monitor.output_path) / monitor.job_name;
  sinks.push_back(
      {.format = format,
       .names = LogNames::deepspeed,
       .folder = folder.empty() ? "." : folder.string(),
       .said_by = section + (monitor.output_path.empty() ? ".job_name" : ".output_path")});
}

}  // namespace

std::vector<LogSink> log_sinks(const TrainOptions& options) {
  std::vector<LogSink> sinks;
  const LogOptions& logs = options.logs;
  for (const std::string& tool : logs.report_to) {
    const bool own = logs.directory.empty();
    sinks.push_back(
        {.format = tool == "csv" ? LogFormat::csv : LogFormat::event_file,
         .names = LogNames::trainer,
         .folder = own ? (std::filesystem::path(options.output) / "runs").string() : logs.directory,
         .makes_own_folder = own,
         .said_by = !own                     ? "--logging-dir"
                    : options.output.empty() ? "--report-to"
                                             : "--output"});
  }
  add_monitor(logs.tensorboard, LogFormat::event_file, "tensorboard", sinks);
  add_monitor(logs.csv, LogFormat::csv, "csv_monitor", sinks);
  return sinks;
}

}  // namespace strata::train
