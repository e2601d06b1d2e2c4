// Tells without compiling that the state of a Plan takes too much host memory.
#pragma once

#include <vector>

#include "compile/compile.h"

namespace strata::plan {

/// True if what a rank keeps between steps alone exceeds the host memory that its Plan allows, so
/// that compiling would refuse it. `at` has the Plan.
bool state_exceeds_host_memory(const std::vector<runtime::ParameterUnit>& units,
                               const step::StepSettings& at);

}  // namespace strata::plan
