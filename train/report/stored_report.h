// A memory report read back from its directory.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "train/report/about_report.h"
#include "train/report/operation_totals.h"

namespace strata::train {

/// The most bytes that buffers of one tier hold at a time.
struct TierPeak {
  double planned = 0;             ///< at any instruction of a step
  std::optional<double> reached;  ///< at those whose times were measured; nullopt: none was
};

struct StoredReport {
  std::string directory;
  AboutReport about;
  std::vector<OperationTotal> operations;
  std::map<std::string, TierPeak> peaks;  ///< by tier
  // Figures of the run's steps; empty in the report of a plan.
  std::vector<double> step_seconds;
  double peak_rss_bytes = 0;           ///< highest of the process
  std::optional<double> device_bytes;  ///< highest in use on the device, by whomever
};

/// Throws InvalidArgument if there is no report in `directory`, ConfigError if it is of another
/// version or broken.
StoredReport read_report(const std::string& directory);

}  // namespace strata::train
