#include "train/report/compared_runs.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <string_view>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
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

/// A member of a line of --metrics; NaN for null, which stands for what is not finite.
double number_of(const JsonValue& line, std::string_view member) {
  const JsonValue value = line.at(member);
  return value.is(JsonKind::null) ? std::numeric_limits<double>::quiet_NaN() : value.as_number();
}

constexpr std::string_view kBlanks = " \t\r\n";

/// True for a file of --metrics, whose lines are JSON objects; empty lines may come before them.
bool is_metrics(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  return first != text.npos && text[first] == '{';
}

/// Says of which run a file without steps is.
std::string why_no_steps(std::string_view text) {
  if (text.find_first_not_of(kBlanks) == text.npos) return "it is empty";
  const bool has_lines = is_metrics(text) && text.find('\n') != text.npos;
  return has_lines ? "all of its lines are about something else, as those of a run that only "
                     "evaluates; name the metrics of a run that trained"
                   : "it is of a plan, or of a run that failed before its first step ended";
}

/// Reads a file of --metrics: a JSON object in each line that is not empty. A last line that does
/// not end is that of a run that goes on, or was killed, and is left out.
std::vector<StepRow> steps_of_metrics(std::string_view text, const std::string& file) {
  std::string array = "[";  // of the lines, which keep their numbers
  for (std::size_t end = 0; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    const std::string_view line = text.substr(0, end);
    array.append(line).append(line.find_first_not_of(kBlanks) == line.npos ? "\n" : ",\n");
  }
  const JsonValue lines = parse_json(array + "]", file,
                                     {.allow_trailing_commas = true,
                                      .fault = JsonFault::configuration,
                                      .size_limit_bytes = 2 * kMostBytes});
  std::vector<StepRow> steps;
  for (const JsonValue& line : lines.elements())
    if (line.find("loss"))  // others are about evaluations, checkpoints and transfers
      steps.push_back({.step = line.at("step").as_integer(),
                       .loss = number_of(line, "loss"),
                       .learning_rate = number_of(line, "learning_rate"),
                       .gradient_norm = number_of(line, "grad_norm"),
                       .seconds = number_of(line, "seconds")});
  return steps;
}

std::vector<StepRow> steps_of_table(const CsvTable& table) {
  std::vector<StepRow> steps;
  for (std::size_t row = 0; row < table.rows(); ++row)
    steps.push_back({.step = table.whole_number(row, "step"),
                     .loss = table.number(row, "loss"),
                     .learning_rate = table.number(row, "learning_rate"),
                     .gradient_norm = table.number(row, "grad_norm"),
                     .seconds = table.number(row, "seconds")});
  return steps;
}

}  // namespace

ComparedRun read_compared_run(const std::string& path) {
  std::error_code error;
  const std::string file =
      fs::is_directory(path, error) ? (fs::path(path) / "steps.csv").string() : path;
  require_file(path, file);
  const std::string text = read_whole_file(file, kMostBytes);
  ComparedRun run{.name = path};
  if (is_metrics(text))
    run.steps = steps_of_metrics(text, file);
  else if (text.find_first_not_of(kBlanks) != text.npos)
    run.steps = steps_of_table(CsvTable(text, file));
  if (run.steps.empty()) throw ConfigError(file + " has no steps; " + why_no_steps(text));
  return run;
}

std::string page_with_runs(const std::string& directory, const std::vector<ComparedRun>& others) {
  std::error_code error;
  if (fs::is_regular_file(directory, error))
    throw InvalidArgument(
        directory +
        " is a file; the first argument is the directory of train --memory-report whose page is "
        "drawn, the files of other runs come after it");
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
