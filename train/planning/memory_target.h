// The amount of memory that a target names.
#pragma once

#include <cstdint>
#include <string>

#include "compile/step_programs.h"
#include "machine/machine.h"
#include "train/config/options.h"

namespace strata::train {

/// Memory that a process of a run takes beside its arenas: code, libraries, the next batch; where
/// the CPU computes, stacks and buffers of each thread of the matrix library (`machine` as one rank
/// has it), and of pages that the `local_ranks` ranks of a host share, code and libraries, its
/// part; in a run that saves or goes on, also what reads and writes checkpoints; with --trace what
/// it records, and what writes that.
std::int64_t process_bytes(const TrainOptions& options, const machine::Machine& machine,
                           int local_ranks);

/// Returns what a target leaves for a process beside its arenas: process_bytes, but with all code
/// and libraries in each of several ranks, and pages of other ranks' arenas that it reads, since
/// the kernel counts these in the process. Larger models read more than that.
std::int64_t bytes_beside_arenas(const TrainOptions& options, const machine::Machine& machine,
                                 int local_ranks);

/// Returns the memory of a process whose Programs are these, arenas in host memory included.
std::int64_t process_bytes(const TrainOptions& options, const machine::Machine& machine,
                           int local_ranks, const compile::StepPrograms& programs);

/// Returns the target in bytes; `all`, what `what` has ("the device"), for "auto". 0: not known.
/// Throws ConfigError if the target exceeds it.
std::int64_t target_bytes(const TargetOptions& target, std::int64_t all, const std::string& what);

/// Returns what --target-memory SIZE leaves for arenas of a process where the CPU computes;
/// kUnlimitedMemory if no size was given. One byte where the process alone takes all of it.
std::int64_t arenas_of_process(const TrainOptions& options, const machine::Machine& machine,
                               int local_ranks);

/// Returns how much memory a rank may take, before it has its arenas, to measure what its machine
/// can do: what a target or --host-memory leaves for them; kUnlimitedMemory if neither is given.
std::int64_t bytes_to_measure_in(const TrainOptions& options, const machine::Machine& machine,
                                 int local_ranks);

}  // namespace strata::train
