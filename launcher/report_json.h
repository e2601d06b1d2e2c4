// The report of an attempt that did not end well, for programs (docs/formats/report.md).
#pragma once

#include <string>

#include "launcher/control/coordinator.h"
#include "launcher/run.h"

namespace strata::launcher {

std::string report_json(const Run& run, const AttemptReport& report);

}  // namespace strata::launcher
