// The search over Plans: it chooses what the Plan that was asked for leaves open, by compiling.
#pragma once

#include <functional>
#include <vector>

#include "compile/compile.h"

namespace strata::plan {

/// Says whether a machine has room for Programs that fit their Plan.
using Accepts = std::function<bool(const compile::Compiled&)>;

struct Search {
  const compile::TrainingModel& model;
  /// The Plan asked for. The search chooses which records of a unit on the disk stay in host
  /// memory, how many are read ahead, how many pinned windows transfers get, and, only if host
  /// memory is too little, whether gradients of units partly on the disk wait there, too. If the
  /// host is the device and both exceed host_bytes, it also divides these bytes.
  runtime::Plan plan;
  const machine::Machine& machine;
  comm::MeshSeat where;
  /// Ways of saving, the one that disturbs training least first.
  std::vector<runtime::SaveMemory> savings = {runtime::SaveMemory::none};
  /// Called for ways of saving but the last, in the same order on all ranks, so it may use
  /// collectives. The default accepts what fits its Plan.
  Accepts accepts = {};
  /// Training is saved after so many steps, or so many seconds; 0: neither.
  std::int64_t save_every_steps = 0, save_every_seconds = 0;
  compile::Effort effort = compile::Effort::full;
};

/// Returns the first Programs that are accepted, in the order of the foreseen time of a step with
/// its part of a save; ways of saving that are about as fast keep their order. If none is, returns
/// those of the last way, even if they do not fit. Among other Plans that fit, takes the one with
/// the shortest foreseen step. Equal arguments give equal answers, and all ranks find the same
/// Plan, that of the rank with the largest shards, but for limits that compile_for_seat raises.
compile::Compiled find_plan(const Search& search);

}  // namespace strata::plan
