// Rules about Plans: which of them can be compiled. What people type is held against these rules,
// too, by way of the Plan that it asks for (train/config/resolver_checks.cpp).
#pragma once

#include <string>
#include <vector>

#include "kernels/ops/step_control.h"
#include "runtime/graph/parameter_unit.h"
#include "runtime/graph/plan.h"

namespace strata::step {

/// Why a Plan cannot be obeyed.
struct PlanProblem {
  std::string path;   ///< before `field`: "units[5]."; "" of the Plan's own
  std::string field;  ///< as the Plan's text calls it: "updates", in a unit "tier.parameter"
  std::string unit;   ///< its name; "": the field is the Plan's
  std::string found;  ///< the field's value
  std::string text;   ///< follows `found`: what is wrong with it, and what to change
  std::string with;   ///< the setting of a run that it contradicts: "gradient_clipping"; or ""
};

/// Finds what is wrong with `plan` for a model of `units`: other units than the model's, kinds in a
/// tier where they cannot live (docs/offload.md), shards that no stage has, recipes that contradict
/// themselves, gradients summed in a type of their own, shorter sequences that are none, ranks
/// along another axis than data, virtual ranks that the ranks cannot stand for. Of training (under
/// `rules`; null: there is none) also that no unit is trained, and updates after their own
/// gradients where something of the whole gradient enters them. Finds nothing else where the units
/// differ.
std::vector<PlanProblem> find_problems(const runtime::Plan& plan,
                                       const std::vector<runtime::ParameterUnit>& units,
                                       const kernels::StepRules* rules = nullptr);

/// Throws InvalidArgument with the first of `problems`, if there is one.
void require_none(const std::vector<PlanProblem>& problems);

}  // namespace strata::step
