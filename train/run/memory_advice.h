// What to change in a run that needs more memory than there is, cheapest first.
#pragma once

#include <string>

#include "machine/machine.h"
#include "train/engine/program_set.h"
#include "train/run/memory_needs.h"

namespace strata::train {

/// Where a run does not fit.
struct CrowdedMachine {
  int rank = 0;   ///< whose memory is planned; others need nearly as much
  int world = 1;  ///< ranks of the run
  machine::Machine machine;
  MachineMemory memory;
};

/// Plans the run again with other settings, in the order of the time that they cost: a higher ZeRO
/// stage, then smaller micro-batches in more micro-steps, then activation checkpointing, then
/// several of them; then state in host memory (where a device has its own) and on a drive. One
/// line: the first of them that fits, with what it needs; or the least that any of them needs.
/// Looks for some seconds: what it has found by then is said.
std::string memory_advice(const ProgramRequest& request, const CrowdedMachine& machine);

}  // namespace strata::train
