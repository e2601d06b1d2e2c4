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
  /// As asked for. Open are: which records of a unit on the disk stay in host memory, how many are
  /// read ahead, the windows of pinned memory that transfers may take, and whether gradients of
  /// units that have something on the disk wait there, too: where host memory is too little.
  runtime::Plan plan;
  const machine::Machine& machine;
  comm::MeshSeat where;
  /// Ways of saving, the fastest first.
  std::vector<runtime::SaveMemory> savings = {runtime::SaveMemory::none};
  /// Asked for each way of saving in turn, but for the last one. On all ranks or on none: it may be
  /// collective. By default: what fits its Plan.
  Accepts accepts = {};
};

/// The first that is accepted, else the one of the last way of saving, which may not fit: its Fit
/// says so. Among Plans that fit the one with the shortest step foreseen. Equal arguments give
/// equal answers, and all ranks find the same Plan: that of the rank with the largest shards.
compile::Compiled find_plan(const Search& search);

}  // namespace strata::plan
