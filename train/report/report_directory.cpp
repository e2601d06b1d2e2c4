#include "train/report/report_directory.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "core/replaced_file.h"
#include "train/report/about_report.h"
#include "train/report/report_page.h"
#include "train/report/report_tables.h"
#include "train/report/report_trace.h"
#include "train/report/summary_text.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

enum ReportFile : std::size_t {
  kSummary,
  kAbout,
  kLayers,
  kOperations,
  kTimeline,
  kSteps,
  kTrace,
  kPage
};
constexpr std::array kNames{"summary.txt",  "about.json", "layers.csv", "operations.csv",
                            "timeline.csv", "steps.csv",  "trace.json", "report.html"};

std::string foreseen_trace(const RunReport& report) {
  runtime::TraceRecorder recorder(
      {.rank = report.rank,
       .of = runtime::TraceOf::device,
       .capacity_per_queue = instructions_of_a_queue(report.timelines)});
  record_foreseen(report.timelines, recorder);
  return trace_json(report.timelines, recorder);
}

constexpr const char* kReportDirectory = "the --memory-report directory";

}  // namespace

std::vector<std::string> report_files(const std::string& directory) {
  std::vector<std::string> files;
  if (directory.empty()) return files;
  for (const char* name : kNames) files.push_back((fs::path(directory) / name).string());
  return files;
}

void require_report_directory(const std::string& directory, NewFolders& folders) {
  if (directory.empty()) return;
  std::error_code error;
  if (fs::exists(directory, error) && !fs::is_directory(directory, error))
    throw IoError(directory, 0,
                  "--memory-report asks for a directory, and this is a file; name "
                  "another or move it away",
                  ENOTDIR);
  folders.make_writable(directory, kReportDirectory);
  for (const std::string& file : report_files(directory))
    if (fs::is_directory(file, error))
      throw IoError(file, 0, "--memory-report writes a file of this name; move the directory away",
                    EISDIR);
}

void write_report(const std::string& directory, const RunReport& report,
                  const runtime::TraceRecorder* recorder) {
  NewFolders folders;
  folders.make_writable(directory,
                        kReportDirectory);  // another may have removed it while it was empty
  const std::string summary = summary_text(report);
  std::vector<ReplacedFile> written;
  written.reserve(kNames.size());
  const auto add = [&](ReportFile file, const std::string& content) {
    ReplacedFile& added = written.emplace_back((fs::path(directory) / kNames[file]).string());
    added.append(content);
    added.sync();
  };
  add(kSummary, summary);
  add(kAbout, about_json(about(report)));
  add(kLayers, layers_csv(report.layers));
  add(kOperations, operations_csv(operation_totals(report.timelines)));
  add(kTimeline, timeline_csv(report.timelines));
  add(kSteps, steps_csv(report));
  add(kTrace,
      recorder != nullptr ? trace_json(report.timelines, *recorder) : foreseen_trace(report));
  add(kPage, report_page(report, summary));
  for (ReplacedFile& file : written) file.commit();
}

}  // namespace strata::train
