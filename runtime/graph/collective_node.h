// Makes Graph nodes for collectives: ordinary nodes that carry a comm::Collective and run on the
// communication queue.
#pragma once

#include <string>

#include "runtime/graph/graph.h"

namespace strata::runtime {

/// `input` and `output` are as comm::Collective says for its kind.
Node collective_node(const comm::Collective& collective, ValueId input, ValueId output, int block,
                     Pass pass, std::string label);

}  // namespace strata::runtime
