// Foresees how long the disk of a machine works for state, without compiling.
#pragma once

#include <vector>

#include "machine/machine.h"
#include "runtime/graph/parameter_unit.h"
#include "step/step.h"

namespace strata::plan {

/// Returns the seconds to read and write the optimizer's records on the disk, as each step does.
double record_seconds(const step::StepSettings& settings,
                      const std::vector<runtime::ParameterUnit>& units,
                      const machine::Machine& machine);

/// Returns the seconds of one save for which training waits: for all of its writing, for what goes
/// through windows, or, with a snapshot in host memory, for none.
double save_seconds(const step::StepSettings& settings,
                    const std::vector<runtime::ParameterUnit>& units,
                    const machine::Machine& machine);

}  // namespace strata::plan
