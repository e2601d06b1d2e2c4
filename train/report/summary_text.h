// The report for people, in one screen or two.
#pragma once

#include <string>

#include "train/report/run_report.h"

namespace strata::train {

std::string summary_text(const RunReport& report);

}  // namespace strata::train
