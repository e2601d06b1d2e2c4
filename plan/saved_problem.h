// Asks what should become of the saved values of a model under a Plan.
#pragma once

#include <cstdint>

#include "compile/compile.h"
#include "runtime/graph/plan.h"

namespace strata::plan {

struct SavedProblem {
  const compile::TrainingModel& model;
  const runtime::Plan& plan;  ///< its `saved` is not read; all else is fixed
  const machine::Machine& machine;
  comm::MeshSeat where;
  std::int64_t device_bytes = runtime::kUnlimited;  ///< budget of the whole arena of the device
  std::int64_t host_bytes = 0;  ///< pinned memory for saved values; 0: none may leave the device
  bool may_recompute = true, may_leave = true, may_use_disk = false;
  /// False: where transfers overlap computation, one share of the memory is tried in place of
  /// three, the one that was best most often.
  bool thorough = true;
};

}  // namespace strata::plan
