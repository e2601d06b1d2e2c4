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

/// As in "45 s", "12 min", "3 h 20 min", "5 d 4 h".
std::string duration_text(double seconds);

}  // namespace strata::launcher
