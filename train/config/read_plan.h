// Reads a Plan from a file (--plan) instead of searching for one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/plan.h"

namespace strata::train {

/// Reads the Plan in `file`: its text alone, or what `train --print-plan` printed, with other lines
/// around it. `asked`: the Plan that the options ask for; the file's may differ in what is sharded,
/// where things live, what is recomputed and what is limited. `savings`: the ways of saving that
/// the run has; one that saves less than the Plan gets a Plan that does, too. `has_drive`:
/// something may live on the disk. Throws ConfigError that names file and field if the Plan is for
/// another run, the file cannot be read, or it holds more than one object.
runtime::Plan read_plan(const std::string& file, const runtime::Plan& asked,
                        const std::vector<runtime::SaveMemory>& savings, bool has_drive);

/// Reads the Plan in `file` as it is, for whichever run it is. Throws ConfigError as read_plan
/// does.
runtime::Plan stored_plan(const std::string& file);

/// The options that --plan overrules, by name.
std::span<const std::string_view> options_that_plans_decide();

}  // namespace strata::train
