// What passes over a Graph prove of their own result: every node reads the version that it names.
#pragma once

#include <string>

#include "runtime/graph/graph.h"

namespace strata::runtime {

/// The first node that reads a version which its bytes do not hold any more, or not yet, in words;
/// "" when there is none. Whether all of a value's bytes were written is left to the verifier.
std::string find_stale_read(const Graph& graph);

}  // namespace strata::runtime
