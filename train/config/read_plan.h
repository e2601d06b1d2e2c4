// --plan: a Plan from a file in place of one that is searched.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/plan.h"

namespace strata::train {

/// The Plan in `file`: its text alone, or what `train --print-plan` printed, with lines around it.
/// `asked`: what this run asks for; the Plan may differ from it in what is sharded, where things
/// live, what is recomputed and what is limited. `savings`: ways of saving that serve it.
/// `has_drive`: something may live on the disk. Throws ConfigError that names file and field where
/// the Plan is for another run, or the file cannot be read or has more than one object.
runtime::Plan read_plan(const std::string& file, const runtime::Plan& asked,
                        const std::vector<runtime::SaveMemory>& savings, bool has_drive);

}  // namespace strata::train
