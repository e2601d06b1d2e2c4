#include "train/session/tool_logs_listener.h"

#include <fmt/core.h>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "train/session/host_label.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

/// The folder of the newest run in `runs`; nullopt: it has none.
std::optional<std::string> newest_run(const std::string& runs) {
  std::optional<fs::directory_entry> newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(runs))
    if (entry.is_directory() && (!newest || entry.last_write_time() > newest->last_write_time()))
      newest = entry;
  if (!newest) return {};
  return newest->path().string();
}

/// Makes the folder of a run, named as transformers do: "Nov24_15-20-00_HOST". A run that goes on
/// has the one it had.
std::string run_folder(const std::string& runs, bool goes_on) {
  if (goes_on)
    if (std::optional<std::string> newest = newest_run(runs)) return std::move(*newest);
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  char time[32];
  std::strftime(time, sizeof time, "%b%d_%H-%M-%S", ::localtime_r(&now, &local));
  const std::string base = runs + "/" + time + "_" + host_label();
  std::string folder = base;
  for (int number = 2; !fs::create_directories(folder); ++number)
    folder = fmt::format("{}-{}", base, number);
  return folder;
}

/// The tags of numbers that each run may have.
std::vector<std::string> usual_tags(LogNames names) {
  std::vector<std::string> tags;
  for (const RunEvent& event : {RunEvent(StepDone{}), RunEvent(Evaluated{}), RunEvent(Saved{})})
    for (const Scalar& scalar : scalars_of(event, names, false).scalars) tags.push_back(scalar.tag);
  return tags;
}

}  // namespace

std::int64_t ToolLogsListener::x_of(std::int64_t step, LogNames names) const {
  return names == LogNames::trainer ? step : step * step_samples_;
}

void ToolLogsListener::fail(const IoError& error) {
  if (!std::exchange(has_failed_, true)) failure_ = error;
}

void ToolLogsListener::open(const Began& began) {
  const auto on_failure = [this](const IoError& error) { fail(error); };
  step_samples_ = began.step_samples;
  std::string own_folder;  // of both formats
  for (const LogSink& sink : sinks_) {
    if (sink.makes_own_folder && own_folder.empty())
      own_folder = run_folder(sink.folder, began.first_step > 0);
    // Another run that made the folder and failed may have removed it while it was empty.
    std::error_code unmade;  // to open a file there tells what is wrong
    if (!sink.makes_own_folder) fs::create_directories(sink.folder, unmade);
    const LogBeginning beginning{sink.makes_own_folder ? own_folder : sink.folder,
                                 x_of(began.first_step, sink.names), sink.said_by};
    const bool csv = sink.format == LogFormat::csv;
    logs_.push_back({sink.names,
                     (csv ? "CSV files" : "event files") + std::string(" in ") + beginning.folder,
                     csv ? open_csv_log(beginning, usual_tags(sink.names), on_failure)
                         : open_event_log(beginning, on_failure)});
    listeners_.print((csv ? "CSV files are in " : "event files for TensorBoard are in ") +
                     beginning.folder);
  }
}

/// Returns false if some of it could not be written.
bool ToolLogsListener::write(const Open& open, const StepScalars& found) {
  try {
    return open.log->write(x_of(found.step, open.names), found.scalars);
  } catch (const IoError& error) {
    fail(error);
    return false;
  }
}

void ToolLogsListener::write(const RunEvent& event) {
  for (Open& open : logs_) {
    const StepScalars found = scalars_of(event, open.names, scaled_);
    if (found.scalars.empty()) continue;
    const bool is_written = write(open, found);
    if (!std::holds_alternative<StepDone>(event)) continue;
    if (const std::string news = open.missing.take(found.step, is_written); !news.empty())
      listeners_.warn(open.where + ": " + news);
  }
}

void ToolLogsListener::tell_missing() {
  for (Open& open : logs_)
    if (const std::string text = std::exchange(open.missing, {}).text(); !text.empty())
      listeners_.warn(open.where + ": " + text);
}

void ToolLogsListener::operator()(const RunEvent& event) {
  if (comes_from_any_thread(event)) return;
  if (const auto* began = std::get_if<Began>(&event)) {
    try {
      open(*began);
    } catch (const fs::filesystem_error& error) {
      throw IoError(error.path1().string(), 0, "cannot open the folder of logs",
                    error.code().value());
    }
  }
  write(event);
  if (std::holds_alternative<Closing>(event)) tell_missing();
  if (failure_) throw IoError(*std::exchange(failure_, {}));
}

}  // namespace strata::train
