// The order pass: it moves each gather ahead of its readers. A schedule keeps only the order of
// collectives that the pass leaves, since ranks must agree on it, and decides itself how far ahead
// gathers run; without a schedule a Program runs in the order of its list.
#pragma once

#include "runtime/graph/graph.h"
#include "runtime/graph/plan.h"

namespace strata::runtime {

/// Moves every gather as early as the Plan's limits allow: the elements gathered ahead of their use
/// stay within `prefetch_elements`, those gathered at one time within `max_live_elements`. Gathers
/// keep their order among collectives of the forward and backward passes, so that all ranks agree.
void hoist_gathers(Graph& graph, const TransferLimits& limits);

}  // namespace strata::runtime
