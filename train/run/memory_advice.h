// Says what to change in a run that needs more memory than there is: the cheapest change that fits,
// and single changes by the bytes that they save for their time.
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
  std::string device = {};  ///< for people, where it is not plain which device is meant
};

/// Plans the run again with other settings, in the order of the time that they cost: a higher ZeRO
/// stage; smaller micro-batches in more micro-steps; activation checkpointing of as little as fits;
/// combinations of these; then state in host memory (if the device has its own) and on a drive.
/// Returns a line with the first of them that fits and what it needs, or with the least that any of
/// them needs; then the single changes that save most bytes for their time, by guesses, a line
/// each. Does a bounded amount of work, and returns the best found by then.
std::string memory_advice(const ProgramRequest& request, const CrowdedMachine& machine);

}  // namespace strata::train
