// Layer-major order of micro-steps: all micro-batches of a layer, then the next layer. A layer's
// state is brought once per direction and step instead of once per micro-step.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace strata::runtime {

struct LayerMajorStep {
  Graph graph;
  std::vector<ValueId> losses;  ///< one per micro-step
};

/// Makes one Graph for a whole step from that of one micro-step (differentiated and recomputed):
/// each stretch of one block and pass runs for all micro-steps before the next stretch. Parameters
/// are shared; inputs of micro-step k > 0 are named NAME@k. Gradients of units add up in
/// `accumulated`, micro-step by micro-step, so the sums have the bits of micro-steps that run one
/// after another.
LayerMajorStep layer_major(const Graph& graph, ValueId loss, int micro_steps, DType accumulated);

/// Returns the name of a micro-step's input: "tokens", "tokens@1", ...
std::string micro_input_name(const std::string& name, int micro_step);

}  // namespace strata::runtime
