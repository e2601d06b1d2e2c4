// Lets passes over a Graph check their result: every node must read the version that it names.
#pragma once

#include <string>

#include "runtime/graph/graph.h"

namespace strata::runtime {

/// Describes the first node that reads a version which its bytes no longer hold, or do not hold
/// yet; "" if there is none. The verifier checks that all of a value's bytes are written.
std::string find_stale_read(const Graph& graph);

}  // namespace strata::runtime
