#include "launcher/output/write_report_command.h"

#include <iostream>
#include <iterator>

#include "core/error.h"
#include "core/run_id.h"
#include "launcher/output/report_writers.h"

namespace strata::launcher {

int write_report_command(const std::vector<std::string>& arguments,
                         const KeptReports::LivingRuns& living, StandardOutput& output) {
  if (arguments.size() != 2 || !is_run_id(arguments[0]))
    throw InvalidArgument(std::string(ReportWriters::kWord) + " is for mlaunch itself");
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  int exit_code = 0;
  std::string words = ReportWriters::kWritten;
  try {
    KeptReports(KeptReports::place(), living).keep(arguments[0], arguments[1], text);
  } catch (const Error& error) {
    exit_code = static_cast<int>(error.exit_code());
    words = error.what();
  }
  output.print(words + "\n");
  return exit_code;
}

}  // namespace strata::launcher
