// Plans without running: what a run would do and need, on this machine or on another.
#pragma once

#include <string>

#include "train/engine/build_programs.h"
#include "train/run/memory_needs.h"
#include "train/run/run_listeners.h"
#include "train/run/training_run.h"

namespace strata::train {

/// True for --steps 0 with --print-plan or --check-config (`checks`): then no data are read and
/// nothing is allocated.
bool plans_only(const TrainOptions& options, bool checks);

/// The machine, memory and ranks that a request is planned for.
struct PlanningSite {
  machine::Machine machine;  ///< as one rank has it
  MachineMemory memory;
  comm::Seat seat;          ///< of rank 0
  std::string description;  ///< of the device
};
PlanningSite planning_site(const RunRequest& request);

/// The Programs that a request is planned by.
ProgramRequest programs_of(const RunRequest& request);

/// Prints the plan of rank 0 of `request.context.world` ranks, and whether it fits into
/// --device-memory and --host-memory, or what is not given of these into the machine of --hardware
/// or this one. Plans for a device even if none is here, if --device cuda, --device-memory or
/// --hardware asks for it. Writes the report of --memory-report. Throws OutOfMemory with advice.
void print_plan_only(const RunRequest& request, const RunListeners& listeners);

}  // namespace strata::train
