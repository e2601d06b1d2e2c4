// How much memory saving gets: Programs with room for snapshots, where the machine has it.
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.h"
#include "train/engine/program_set.h"
#include "train/run/console.h"
#include "train/run/run_disk.h"

namespace strata::train {

struct SavePlanning {
  comm::Communicator& ranks;
  RunDisk& disk;
  Console& console;
  int local_ranks = 1;  ///< of this machine
  std::function<ProgramSet(SaveMemory)> build;
  /// Throws HostError when the machine has not what they need.
  std::function<void(const ProgramSet&)> require_memory;
};

/// Collective: Programs with snapshots in host memory; where that has no room, through windows;
/// else without snapshots. What is not as fast as it could be is said, with the reason.
ProgramSet plan_for_snapshots(const SavePlanning& planning);

}  // namespace strata::train
