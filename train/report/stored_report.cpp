#include "train/report/stored_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "train/report/csv_table.h"

namespace strata::train {
namespace {

constexpr std::int64_t kMostReportBytes = std::int64_t{1} << 30;

std::string path_in(const std::string& directory, const char* name) {
  return (std::filesystem::path(directory) / name).string();
}

CsvTable table_in(const std::string& directory, const char* name) {
  const std::string path = path_in(directory, name);
  return {read_whole_file(path, kMostReportBytes), path};
}

void require_files(const std::string& directory) {
  std::error_code error;
  for (const char* name : {"about.json", "operations.csv", "timeline.csv", "steps.csv"})
    if (!std::filesystem::is_regular_file(path_in(directory, name), error))
      throw InvalidArgument(fmt::format(
          "{} holds no memory report: it has no {}; train --memory-report {} writes one", directory,
          name, directory));
}

std::map<std::string, TierPeak> peaks_in(const CsvTable& timeline) {
  std::map<std::string, TierPeak> peaks;
  for (const runtime::Tier tier : runtime::kAllTiers) {
    const std::string name(name_of(tier));
    TierPeak& peak = peaks[name];
    for (std::size_t row = 0; row < timeline.rows(); ++row) {
      const double bytes = timeline.number(row, name + "_bytes");
      peak.planned = std::max(peak.planned, bytes);
      if (timeline.number_if_any(row, "measured_mean_ms"))
        peak.reached = std::max(peak.reached.value_or(0), bytes);
    }
  }
  return peaks;
}

}  // namespace

StoredReport read_report(const std::string& directory) {
  require_files(directory);
  StoredReport report{.directory = directory};
  const std::string about = path_in(directory, "about.json");
  report.about = read_about(read_whole_file(about, kMostReportBytes), about);
  const CsvTable operations = table_in(directory, "operations.csv");
  for (std::size_t row = 0; row < operations.rows(); ++row)
    report.operations.push_back({.operation = operations.text(row, "operation"),
                                 .pass = operations.text(row, "pass"),
                                 .queue = operations.text(row, "queue"),
                                 .instructions = operations.number(row, "instructions"),
                                 .foreseen_ms = operations.number(row, "foreseen_ms"),
                                 .measured_ms = operations.number_if_any(row, "measured_ms")});
  report.peaks = peaks_in(table_in(directory, "timeline.csv"));
  const CsvTable steps = table_in(directory, "steps.csv");
  for (std::size_t row = 0; row < steps.rows(); ++row) {
    report.step_seconds.push_back(steps.number(row, "seconds"));
    report.peak_rss_bytes = std::max(report.peak_rss_bytes, steps.number(row, "peak_rss_bytes"));
    if (const std::optional<double> bytes = steps.number_if_any(row, "device_bytes"))
      report.device_bytes = std::max(report.device_bytes.value_or(0), *bytes);
  }
  return report;
}

}  // namespace strata::train
