// Whether the machines of all ranks have room for a way of saving.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "compile/compile.h"
#include "train/engine/build_programs.h"
#include "train/run/run_disk.h"

namespace strata::train {

struct SavingMachines {
  comm::Communicator& ranks;
  RunDisk& disk;
  const ProgramRequest& request;
  /// Throws HostError when the machine has not what they need.
  std::function<void(const compile::StepPrograms&)> require_memory;
};

class RoomForSaving {
 public:
  explicit RoomForSaving(SavingMachines machines) : machines_(std::move(machines)) {}

  /// Collective, plan::Accepts: all fits everywhere. Throws what has nothing to do with room.
  bool accepts(const compile::Compiled& tried);
  /// What people should know where saving is not as fast as it could be; empty: it is.
  [[nodiscard]] std::string note(runtime::SaveMemory chosen) const;

 private:
  SavingMachines machines_;
  std::vector<std::string> refusals_;  ///< of those that were tried, in turn
};

}  // namespace strata::train
