// The rules that say which Plans can be compiled. Options that people type are checked by them,
// too, by way of the Plan that the options ask for (train/config/resolver_checks.cpp).
#pragma once

#include <string>
#include <vector>

#include "kernels/ops/step_control.h"
#include "runtime/graph/parameter_unit.h"
#include "runtime/graph/plan.h"

namespace strata::step {

/// A reason why a Plan cannot be obeyed.
struct PlanProblem {
  std::string path;   ///< path that precedes `field`: "units[5]."; "" for the Plan itself
  std::string field;  ///< name in the Plan's text: "updates", in a unit "tier.parameter"
  std::string unit;   ///< name of the unit; "": the field is the Plan's
  std::string found;  ///< the field's value
  std::string text;   ///< follows `found`: what is wrong with it, and what to change
  std::string with;   ///< option that it contradicts: "gradient_clipping"; or ""
};

/// Finds what is wrong with `plan` for a model of `units`: units of another model, kinds of state
/// in a tier where they cannot live (docs/offload.md), combinations of shards that no stage has,
/// contradictory recipes, optimizer work that is not cut at cells, gradients accumulated in a type
/// of their own, shorter sequences that are not shorter or not ascending, ranks along another axis
/// than data, virtual ranks that do not fit the ranks. For training (under `rules`; null: none)
/// also: no unit is trained, and updates that follow their own gradients though they need something
/// of the whole gradient. If the units differ, only that is reported.
std::vector<PlanProblem> find_problems(const runtime::Plan& plan,
                                       const std::vector<runtime::ParameterUnit>& units,
                                       const kernels::StepRules* rules = nullptr);

/// Throws InvalidArgument with the first of `problems`, if there is one.
void require_none(const std::vector<PlanProblem>& problems);

}  // namespace strata::step
