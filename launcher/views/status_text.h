// The status of runs as tables for people.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"

namespace strata::launcher {

/// A row for each run (docs/formats/status.md). What a rank wrote cannot steer the terminal.
std::string runs_table(const std::vector<JsonValue>& runs);

/// A row for each host of a run, and what it waits for; "" if it has one host, or none is known.
std::string hosts_table(const JsonValue& run);

/// A row for each rank of a run; "" if none is known.
std::string ranks_table(const JsonValue& run);

/// A checkpoint of a run that could not be written, as ranks tell of it.
struct ShownSaveFailure {
  double step = 0;
  double seconds = 0;  ///< since the first failure in a row
  std::string why;     ///< cannot steer the terminal
  bool operator==(const ShownSaveFailure&) const = default;
};

/// Lists them, newest first. Ranks that share one tell it once, with the longest time.
std::vector<ShownSaveFailure> save_failures(const JsonValue& run);

/// Says of them what fails, and for how long, a line each; "" if none does.
std::string save_failures_text(const JsonValue& run);

/// Says of each run what is wrong with it: it does not answer, or saves fail; "" if nothing is.
std::string trouble_text(const std::vector<JsonValue>& runs);

/// As in "45 s", "12 min", "3 h 20 min", "5 d 4 h".
std::string duration_text(double seconds);

}  // namespace strata::launcher
