// The report of an attempt that did not end well, for programs (docs/formats/report.md).
#pragma once

#include <chrono>
#include <string>

#include "launcher/command/run.h"
#include "launcher/control/coordinator.h"

namespace strata::launcher {

/// `ended_at`: when the attempt ended.
std::string report_json(const Run& run, const AttemptReport& report,
                        std::chrono::system_clock::time_point ended_at);

}  // namespace strata::launcher
