// Finds the root that an operand of a Program belongs to.
#pragma once

#include <cstddef>

#include "runtime/program/program.h"

namespace strata::runtime {

/// Returns the root of a value of `program`: the value itself if it owns its storage.
inline ValueId root_of(const Program& program, ValueId id) {
  const ValueId root = program.values[static_cast<std::size_t>(id)].root;
  return root == kNoValue ? id : root;
}

}  // namespace strata::runtime
