// Makes of the command line of `plan` the requests that it plans: one for each row of its table.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/rank_context.h"
#include "train/models/model_family.h"
#include "train/run/training_run.h"
#include "train/session/plan_command_line.h"

namespace strata::train {

/// The machine and the target of one line of the table.
struct PlanRow {
  std::string hardware;   ///< "": this machine
  std::string target;     ///< "": what a file says, or all memory
  std::size_t price = 0;  ///< index among the prices
};

/// Returns every target on every machine.
std::vector<PlanRow> planned_rows(const PlanCommandLine& line);

/// Settles what `train` would be asked for on the machine of `row`. Throws ConfigError for settings
/// that do not suit it, which names that one of several; other Errors as settle_request.
RunRequest request_of_row(const PlanCommandLine& line, const PlanRow& row,
                          const RankContext& context, std::span<const ModelFamily> own);

}  // namespace strata::train
