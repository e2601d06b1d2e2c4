// The tables of a report, as CSV: a header line, then rows; docs/formats/memory-report.md has each
// column.
#pragma once

#include <string>

#include "train/report/operation_totals.h"
#include "train/report/run_report.h"

namespace strata::train {

/// A row per block in the model's order, then one named "total".
std::string layers_csv(const std::vector<plan::LayerProfile>& layers);

/// A row per instruction of each Program.
std::string timeline_csv(const std::vector<ProgramTimeline>& timelines);

/// A row per operation, pass and queue of a step.
std::string operations_csv(const std::vector<OperationTotal>& operations);

/// A row per step of this process.
std::string steps_csv(const RunReport& report);

/// Quoted where it has to be.
std::string csv_field(std::string_view text);

}  // namespace strata::train
