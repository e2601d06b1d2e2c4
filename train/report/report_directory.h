// The directory of --memory-report: whether a report can be written there, and writing it.
#pragma once

#include <string>
#include <vector>

#include "core/new_folders.h"
#include "runtime/execute/trace.h"
#include "train/report/run_report.h"

namespace strata::train {

/// Paths of the files that a report in `directory` has.
std::vector<std::string> report_files(const std::string& directory);

/// Makes the directory where it is missing. Throws IoError naming --memory-report if a file of
/// this name is in its place or one of a report's files cannot be written there.
void require_report_directory(const std::string& directory, NewFolders& folders);

/// Makes the directory where it is missing, and replaces the files of an earlier report once all of
/// this one are on the disk: what does not fit there changes nothing. Other files stay. `recorder`:
/// what the run measured; null: the trace shows foreseen times. Throws IoError naming the file.
void write_report(const std::string& directory, const RunReport& report,
                  const runtime::TraceRecorder* recorder);

}  // namespace strata::train
