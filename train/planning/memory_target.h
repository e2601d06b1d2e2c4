// The amount of memory that a target names.
#pragma once

#include <cstdint>
#include <string>

#include "machine/machine.h"
#include "train/config/options.h"

namespace strata::train {

/// Memory that a process of a run takes beside its arenas: code, libraries, the next batch; where
/// the CPU computes, stacks and buffers of each thread of the matrix library (`machine` as one rank
/// has it); in a run that saves or goes on, also what reads and writes checkpoints.
std::int64_t process_bytes(const TrainOptions& options, const machine::Machine& machine);

/// Returns the target in bytes; `all`, what `what` has ("the device"), for "auto". 0: not known.
/// Throws InvalidArgument if the target exceeds it.
std::int64_t target_bytes(const TargetOptions& target, std::int64_t all, const std::string& what);

}  // namespace strata::train
