// Counts what steps write to the drives, which wear by it.
#pragma once

#include <cstdint>

#include "compile/step_programs.h"
#include "machine/machine.h"

namespace strata::plan {

/// Returns the bytes that one rank writes to the drives in a step; checkpoints do not count.
std::int64_t bytes_written_per_step(const compile::StepPrograms& programs);

/// Returns the days of training after which the drives of a host have taken all that they may; 0:
/// never, or not known. `written_per_step`: by all ranks of the host.
double days_until_written(const machine::Disk& disk, double written_per_step, double step_seconds);

}  // namespace strata::plan
