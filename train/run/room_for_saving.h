// Checks whether the machines of all ranks have room for a way of saving.
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
  /// Says which memory that the Programs need the machine does not have; empty if it has all.
  std::function<std::string(const compile::StepPrograms&)> lacking_memory;
};

class RoomForSaving {
 public:
  explicit RoomForSaving(SavingMachines machines) : machines_(std::move(machines)) {}

  /// Collective, a plan::Accepts: true if all fits on all ranks.
  bool accepts(const compile::Compiled& tried);
  /// Explains a way of saving that disturbs training more than others; empty if none does less.
  [[nodiscard]] std::string note(runtime::SaveMemory chosen) const;

 private:
  [[nodiscard]] std::string lacking(const compile::Compiled& tried) const;

  SavingMachines machines_;
  std::vector<std::string> refusals_;  ///< reasons against the ways that were tried, in order
};

}  // namespace strata::train
