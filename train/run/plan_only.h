// A plan without a run: what it would do and need, on this machine or on another one.
#pragma once

#include "train/run/run_listeners.h"
#include "train/run/training_run.h"

namespace strata::train {

/// --steps 0 with --print-plan or --check-config (`checks`): no data are read, nothing is
/// allocated.
bool plans_only(const TrainOptions& options, bool checks);

/// Prints the plan of rank 0 of `request.context.world` ranks, and whether it fits: into
/// --device-memory and --host-memory, where they are given, else into the machine of --hardware or
/// this one. A device that is not here is planned for where --device cuda, --device-memory or
/// --hardware asks for one. Writes the report of --memory-report. Throws OutOfMemory with advice.
void print_plan_only(const RunRequest& request, const RunListeners& listeners);

}  // namespace strata::train
