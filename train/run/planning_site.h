// Tells for which machine, memory and ranks a request is planned where nothing runs.
#pragma once

#include <string>

#include "train/engine/build_programs.h"
#include "train/run/memory_needs.h"
#include "train/run/training_run.h"

namespace strata::train {

/// The machine, memory and ranks that a request is planned for.
struct PlanningSite {
  machine::Machine machine;  ///< as one rank has it
  MachineMemory memory;
  comm::Seat seat;          ///< of rank 0
  std::string description;  ///< of the device
};
PlanningSite planning_site(const RunRequest& request);

/// Free memory of the host to plan for, --hardware's or this one's; 0: unknown.
std::int64_t free_host_bytes(const RunRequest& request);

/// Gives a request that is planned and not run `world` ranks on the machine of --hardware, whose
/// devices have the memory that driver and libraries leave. Throws ConfigError for ranks that
/// cannot add gradients together, as a run of them would, and InvalidArgument for too many of a
/// machine.
void assume_ranks(int world, RunRequest& request);

/// The Programs that a request is planned by.
ProgramRequest programs_of(const RunRequest& request);
/// The same with `options` in place of the request's own.
ProgramRequest programs_of(const RunRequest& request, const TrainOptions& options);

}  // namespace strata::train
