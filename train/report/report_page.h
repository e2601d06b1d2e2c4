// report.html: one file that needs nothing else, with the report's numbers inside.
#pragma once

#include <string>
#include <string_view>

#include "core/json_writer.h"
#include "train/report/run_report.h"

namespace strata::train {

std::string report_page(const RunReport& report, std::string_view summary);

/// Returns what page/report.js reads, as one line of JSON.
std::string page_data(const RunReport& report, std::string_view summary);

/// Writes an object with a column of each curve under the key "steps".
void write_steps(JsonWriter& json, const std::vector<StepRow>& all);

/// The same JSON, which cannot end the script that holds it.
std::string escape_for_script(std::string_view json);

}  // namespace strata::train
