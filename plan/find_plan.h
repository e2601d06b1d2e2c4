// The search over Plans: what is open in the one that was asked for is chosen by compiling.
#pragma once

#include <functional>
#include <vector>

#include "compile/compile.h"

namespace strata::plan {

/// Whether a machine has room for what fits its Plan.
using Accepts = std::function<bool(const compile::Compiled&)>;

struct Search {
  const compile::TrainingModel& model;
  /// The Plan asked for. The search chooses which records of a unit on the disk stay in host
  /// memory, how many are read ahead, the windows of pinned memory for transfers, and whether
  /// gradients of units partly on the disk wait there, too: only where host memory is too little.
  /// Where the host is the device and both together exceed host_bytes: what the device has of it.
  runtime::Plan plan;
  const machine::Machine& machine;
  comm::MeshSeat where;
  /// Ways of saving, the fastest first.
  std::vector<runtime::SaveMemory> savings = {runtime::SaveMemory::none};
  /// Called for each way of saving in turn but the last, on all ranks or on none: it may be
  /// collective. By default accepts what fits its Plan.
  Accepts accepts = {};
};

/// Returns the first that is accepted, else that of the last way of saving, even if it does not
/// fit. Of Plans that fit, takes the one with the shortest foreseen step. Equal arguments give
/// equal answers, and all ranks find the same Plan: that of the rank with the largest shards.
compile::Compiled find_plan(const Search& search);

}  // namespace strata::plan
