// The figures of a run in Prometheus' text format (version 0.0.4).
#pragma once

#include <string>

#include "launcher/views/run_status.h"

namespace strata::launcher {

/// What is not known has no line. docs/formats/status.md lists the names.
std::string metrics_text(const RunStatus& status);

}  // namespace strata::launcher
