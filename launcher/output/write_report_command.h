// Makes mlaunch the writer of a report (report_writers.h); no command for people.
#pragma once

#include <string>
#include <vector>

#include "core/standard_output.h"
#include "launcher/output/kept_reports.h"

namespace strata::launcher {

/// Writes standard input where KeptReports keeps it; `arguments` are the run's id and the file's
/// name. Prints a line, how that went. Returns the exit code. Throws InvalidArgument for others.
int write_report_command(const std::vector<std::string>& arguments,
                         const KeptReports::LivingRuns& living, StandardOutput& output);

}  // namespace strata::launcher
