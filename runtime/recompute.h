// Recomputation as a pass over a differentiated Graph.
#pragma once

#include <vector>

#include "runtime/graph.h"
#include "runtime/plan.h"

namespace strata::runtime {

/// For each segment of blocks: backward nodes no longer read values that the segment's forward pass
/// made; they read copies that the same operations make again, from what enters the segment, just
/// before the segment's backward pass. Values that leave the segment (the next one's input) stay.
/// Operations are pure and random numbers are keyed, so the copies have the same bits. Ends the
/// process when something overwrites in place what a segment reads again, so that the copies would
/// be made from a later version.
///
/// With RecomputeWhat::norms_and_activations only outputs of norm, residual_norm (but for the sum),
/// gelu and swiglu are made again; what they read is kept.
void recompute(Graph& graph, const std::vector<RecomputeSegment>& segments,
               RecomputeWhat what = RecomputeWhat::everything);

}  // namespace strata::runtime
