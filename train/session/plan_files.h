// Writes the files that `plan` was asked for, and notes on standard error what they leave out.
#pragma once

#include <span>

#include "train/run/training_run.h"
#include "train/session/plan_command_line.h"
#include "train/session/plan_table.h"

namespace strata::train {

/// Writes what the flags ask for of the first machine. `request`: that it was planned for. Throws
/// IoError if a file cannot be written.
void write_files(const PlanCommandLine& line, RunRequest request, const PlannedMachine& machine);

/// Says what plans without --output lack for a run that saves. A Plan of --plan says itself whether
/// it is for such a run.
void note_saving(const PlanCommandLine& line, std::span<const PlannedMachine> machines);

}  // namespace strata::train
