// The meaning of ZeRO stages: which of {optimizer state, gradient, parameter} of each unit is
// sharded. Elsewhere a stage number is only written, read and compared.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/parameter_unit.h"
#include "runtime/graph/plan.h"

namespace strata::zero {

inline constexpr int kHighestStage = 3;

struct StagePolicy {
  int stage = 0;
  /// Stage 3: units of up to this many elements stay gathered (their gradients and optimizer state
  /// are sharded nevertheless) ...
  std::int64_t persistence_threshold_elements = 100'000;
  /// ... as long as all of them together stay within this.
  std::int64_t model_persistence_threshold_elements = INT64_MAX;
  bool operator==(const StagePolicy&) const = default;
};

/// True if ranks keep gradients as shards, and so reduce them in each micro-step, or with virtual
/// ranks add them up as such ranks would.
bool shards_gradients(const StagePolicy& policy);

/// Makes one UnitPlan per unit, for `data_ranks` ranks along the data axis that stand for
/// `virtual_ranks` (0: one each). A single rank shards only gradients that virtual ranks reduce in
/// each micro-step, so that it has the bits of a larger world.
std::vector<runtime::UnitPlan> plan_units(const std::vector<runtime::ParameterUnit>& units,
                                          const StagePolicy& policy, int data_ranks,
                                          int virtual_ranks = 0);

}  // namespace strata::zero
