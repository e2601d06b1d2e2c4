// Says for people what `plan` found for one machine.
#pragma once

#include <string>

#include "train/session/plan_table.h"

namespace strata::train {

/// Lines: the plan or the refusal, and of a plan the wear of drives, the time of all steps, and
/// where the rates come from. `explains`: also what was compared.
std::string machine_text(const PlannedMachine& machine, bool explains);

}  // namespace strata::train
