// Says what to change in a run that needs more memory than there is, cheapest first.
#pragma once

#include <string>

#include "comm/seat.h"
#include "machine/machine.h"
#include "train/engine/build_programs.h"
#include "train/run/memory_needs.h"

namespace strata::train {

/// The machine on which a run does not fit.
struct CrowdedMachine {
  comm::Seat seat;  ///< seat of the planned rank; others need nearly as much
  machine::Machine machine;
  MachineMemory memory;
};

/// Plans the run again with other settings, in the order of the time that they cost: a higher ZeRO
/// stage; smaller micro-batches in more micro-steps; activation checkpointing of as little as fits;
/// combinations of these; then state in host memory (if the device has its own) and on a drive.
/// Returns one line: the first of them that fits, with what it needs, or the least that any of them
/// needs. Does a bounded amount of work, and returns the best found by then.
std::string memory_advice(const ProgramRequest& request, const CrowdedMachine& machine);

}  // namespace strata::train
