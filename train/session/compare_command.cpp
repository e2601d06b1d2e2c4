#include "train/session/compare_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "train/report/compare_reports.h"

namespace strata::train {
namespace {

constexpr std::string_view kHelp =
    R"(usage: plan compare [--json] FORESEEN MEASURED

Says how far off a plan was, operation by operation and memory by memory, worst first, from two
directories of train --memory-report: that of a plan (with --print-plan --steps 0) or of another
run, and that of a run. Settings in which they differ come first.

  --json                      print JSON instead of text

Exit status: 0, 2 for a flag that is not known and for directories that hold no reports or reports
of different models, 74 for an output that cannot be written, 78 for a report of another version.
)";

}  // namespace

int compare_command(std::span<const char* const> words, StandardOutput& output) {
  std::vector<std::string> directories;
  bool json = false;
  for (const std::string_view word : words) {
    if (word == "-h" || word == "--help") {
      output.print(kHelp);
      return 0;
    }
    if (word == "--json")
      json = true;
    else if (word.starts_with('-'))
      throw InvalidArgument(fmt::format(
          "compare: '{}' is no flag of it; it knows --json and --help: plan compare --help", word));
    else
      directories.emplace_back(word);
  }
  if (directories.size() != 2)
    throw InvalidArgument(
        fmt::format("compare needs two directories of --memory-report, that of a plan and that of "
                    "a run, and found {}: plan compare FORESEEN MEASURED",
                    directories.size()));
  const StoredReport foreseen = read_report(directories[0]), measured = read_report(directories[1]);
  output.print(json ? comparison_json(foreseen, measured) : comparison_text(foreseen, measured));
  return 0;
}

}  // namespace strata::train
