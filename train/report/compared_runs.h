// The page of a report with the steps of other runs drawn beside its own (`plan compare --page`).
#pragma once

#include <string>
#include <vector>

#include "train/report/measured_run.h"

namespace strata::train {

struct ComparedRun {
  std::string name;  ///< as it was typed
  std::vector<StepRow> steps;
};

/// Reads the steps of a run from the folder of its report, from a steps.csv, or from a file of
/// --metrics. Throws InvalidArgument where there is no such file, ConfigError where it has no steps
/// or is none.
ComparedRun read_compared_run(const std::string& path);

/// Returns report.html of the report in `directory` with curves of `others`, too. Throws
/// InvalidArgument where there is no such page, ConfigError if it is of another version.
std::string page_with_runs(const std::string& directory, const std::vector<ComparedRun>& others);

}  // namespace strata::train
