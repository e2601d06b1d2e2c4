#include "train/session/compare_command.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/overwriting.h"
#include "train/report/compare_reports.h"
#include "train/report/compared_runs.h"

namespace strata::train {
namespace {

constexpr std::string_view kHelp =
    R"(usage: plan compare [--json] FORESEEN MEASURED
       plan compare --page FILE REPORT RUN...

Says how far off a plan was, operation by operation and memory by memory, worst first, from two
directories of train --memory-report: that of a plan (with --print-plan --steps 0) or of another
run, and that of a run. Settings in which they differ come first.

  --json                      print JSON instead of text
  --page FILE                 write a page (FILE.html) instead: report.html of REPORT, in which
                              loss, learning rate, gradient norm and time of the steps of each RUN,
                              a directory of a report, its steps.csv or a file of --metrics, are
                              drawn beside its own

Exit status: 0, 2 for a flag that is not known and for directories that hold no reports or reports
of different models, 74 for text or a page that cannot be written, 78 for a report of another
version and steps that cannot be read.
)";

struct CompareWords {
  std::vector<std::string> directories;
  bool json = false, asks_help = false;
  std::optional<std::string> page;
};

CompareWords read_words(std::span<const char* const> words) {
  CompareWords read;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "-h" || word == "--help") {
      read.asks_help = true;
    } else if (word == "--json") {
      read.json = true;
    } else if (word == "--page") {
      if (i + 1 == words.size()) throw InvalidArgument("compare: --page needs a file to write");
      read.page = words[++i];
    } else if (word.starts_with("--page=")) {
      read.page = word.substr(7);
    } else if (word.starts_with('-')) {
      throw InvalidArgument(
          fmt::format("compare: '{}' is no flag of it; it knows --json, --page and --help: plan "
                      "compare --help",
                      word));
    } else {
      read.directories.emplace_back(word);
    }
  }
  return read;
}

/// Gathers what is wrong with several arguments, to say all of it at once.
class Faults {
 public:
  template <typename Call>
  void of(const Call& call) {
    try {
      call();
    } catch (const InvalidArgument& error) {
      add(error);
      is_usage_ = true;
    } catch (const ConfigError& error) {
      add(error);
    }
  }
  void throw_if_any() const {
    if (is_usage_) throw InvalidArgument(text_);
    if (!text_.empty()) throw ConfigError(text_);
  }

 private:
  void add(const Error& error) { text_ += (text_.empty() ? "" : "\n") + std::string(error.what()); }

  std::string text_;
  bool is_usage_ = false;
};

/// Lists the files of a report and of runs: those of directories, or themselves.
std::vector<NamedFile> files_of(const std::vector<std::string>& arguments) {
  std::vector<NamedFile> files;
  for (const std::string& argument : arguments)
    for (const std::string& path : {argument, argument + "/report.html", argument + "/steps.csv"}) {
      std::error_code none;
      if (std::filesystem::is_regular_file(path, none))
        files.push_back({&argument == arguments.data() ? "REPORT" : "RUN", path});
    }
  return files;
}

void write_page(const CompareWords& words, StandardOutput& output) {
  if (words.json) throw InvalidArgument("compare: --page writes a page and no JSON; leave one out");
  if (!words.page->ends_with(".html"))
    throw InvalidArgument(
        fmt::format("compare: --page {}: expected a name that ends with .html, which is replaced",
                    *words.page));
  if (words.directories.size() < 2)
    throw InvalidArgument(
        fmt::format("compare --page needs a directory of --memory-report and at least one run to "
                    "draw beside it, and found {}: plan compare --page FILE REPORT RUN...",
                    words.directories.size()));
  refuse_overwriting(std::vector<NamedFile>{{"compare: --page", *words.page}},
                     files_of(words.directories));
  const std::string& report = words.directories[0];
  std::vector<ComparedRun> others;
  Faults faults;
  faults.of([&] { (void)page_with_runs(report, {}); });
  for (std::size_t i = 1; i < words.directories.size(); ++i)
    faults.of([&] { others.push_back(read_compared_run(words.directories[i])); });
  faults.throw_if_any();
  write_file_atomically(*words.page, page_with_runs(report, others));
  output.print("page: " + *words.page + "\n");
}

}  // namespace

int compare_command(std::span<const char* const> arguments, StandardOutput& output) {
  const CompareWords words = read_words(arguments);
  if (words.asks_help) {
    output.print(kHelp);
    return 0;
  }
  if (words.page) {
    write_page(words, output);
    return 0;
  }
  const std::vector<std::string>& directories = words.directories;
  if (directories.size() != 2)
    throw InvalidArgument(
        fmt::format("compare needs two directories of --memory-report, that of a plan and that of "
                    "a run, and found {}: plan compare FORESEEN MEASURED",
                    directories.size()));
  const StoredReport foreseen = read_report(directories[0]), measured = read_report(directories[1]);
  output.print(words.json ? comparison_json(foreseen, measured)
                          : comparison_text(foreseen, measured));
  return 0;
}

}  // namespace strata::train
