// Plans whose Programs run one instruction after another: a bound of what others need.
#pragma once

#include "runtime/graph/plan.h"

namespace strata::plan {

/// Returns the Plan without a schedule, and without what only a schedule can do.
inline runtime::Plan unscheduled(runtime::Plan plan) {
  plan.scheduled = false;
  plan.read_ahead_bytes = 0;
  return plan;
}

}  // namespace strata::plan
