// about.json: what a report is about, for programs that compare reports.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "train/report/run_report.h"

namespace strata::train {

struct AboutReport {
  std::string model;                ///< as its option says
  std::int64_t parameters = 0;      ///< elements of the whole model
  std::vector<std::string> blocks;  ///< of the model
  std::string device;               ///< for people
  int ranks = 1;
  double foreseen_seconds = 0;                      ///< of a step
  std::map<std::string, std::int64_t> arena_bytes;  ///< by tier
  std::int64_t process_bytes = 0;                   ///< foreseen of the process, arenas included
  std::map<std::string, std::string> settings;      ///< values by option
};

AboutReport about(const RunReport& report);

std::string about_json(const AboutReport& about);

/// Inverse of about_json. Strict: throws ConfigError that names `file`, line and key.
AboutReport read_about(std::string_view text, const std::string& file);

}  // namespace strata::train
