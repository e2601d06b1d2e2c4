#include "train/report/compared_runs.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "core/error.h"
#include "core/file.h"
#include "core/json_writer.h"
#include "train/report/csv_table.h"
#include "train/report/report_page.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
/// A page without other runs has this, and no other text of it: quotes within JSON's are escaped.
constexpr std::string_view kNoRuns = R"("compared":[])";

void require_file(const std::string& path, const std::string& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error))
    throw InvalidArgument(fmt::format(
        "{}: there is no {}; name the directory of train --memory-report of a run that has ended",
        path, file));
}

}  // namespace

ComparedRun read_compared_run(const std::string& path) {
  std::error_code error;
  const std::string file =
      fs::is_directory(path, error) ? (fs::path(path) / "steps.csv").string() : path;
  require_file(path, file);
  const CsvTable table(read_whole_file(file, kMostBytes), file);
  ComparedRun run{.name = path, .steps = {}};
  for (std::size_t row = 0; row < table.rows(); ++row)
    run.steps.push_back({.step = static_cast<std::int64_t>(table.number(row, "step")),
                         .loss = table.number(row, "loss"),
                         .learning_rate = table.number(row, "learning_rate"),
                         .gradient_norm = table.number(row, "grad_norm"),
                         .seconds = table.number(row, "seconds")});
  if (run.steps.empty())
    throw ConfigError(
        file +
        " has no steps; it is of a plan, or of a run that failed before its first step ended");
  return run;
}

std::string page_with_runs(const std::string& directory, const std::vector<ComparedRun>& others) {
  const std::string file = (fs::path(directory) / "report.html").string();
  require_file(directory, file);
  std::string page = read_whole_file(file, kMostBytes);
  const std::size_t at = page.find(kNoRuns);
  if (at == std::string::npos)
    throw ConfigError(file +
                      " is the page of another version of Strata, to which no runs can be "
                      "added; open their steps.csv in it");
  JsonWriter json(0);
  json.begin_object().member("name", directory).key("compared").begin_array();
  for (const ComparedRun& run : others) {
    json.begin_object().member("name", run.name);
    write_steps(json, run.steps);
    json.end_object();
  }
  const std::string object = json.end_array().end_object().finish();
  const std::size_t first = object.find('{') + 1;
  const std::string members = object.substr(first, object.rfind('}') - first);
  return page.replace(at, kNoRuns.size(), escape_for_script(members));
}

}  // namespace strata::train
