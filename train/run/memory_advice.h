// What to change in a run that needs more memory than there is, cheapest first.
#pragma once

#include <string>

#include "comm/seat.h"
#include "machine/machine.h"
#include "train/engine/build_programs.h"
#include "train/run/memory_needs.h"

namespace strata::train {

/// Where a run does not fit.
struct CrowdedMachine {
  comm::Seat seat;  ///< of the rank whose memory is planned; others need nearly as much
  machine::Machine machine;
  MachineMemory memory;
};

/// Plans the run again with other settings, in the order of the time that they cost: a higher ZeRO
/// stage, then smaller micro-batches in more micro-steps, then activation checkpointing of as
/// little as fits, then several of them; then state in host memory (where a device has its own) and
/// on a drive. One line: the first of them that fits, with what it needs; or the least that any of
/// them needs. Looks for some seconds: what it has found by then is said.
std::string memory_advice(const ProgramRequest& request, const CrowdedMachine& machine);

}  // namespace strata::train
