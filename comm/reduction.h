// The choice between sums of our own and those of a library.
#pragma once

#include <cstdint>

namespace strata::comm {

/// How reduce_scatter adds. ordered: as collective.h says, the same bits with every backend.
/// native: in the order and the precision of the library that carries the bytes: fewer bytes of
/// scratch and often faster, but bits depend on it and on the number of ranks.
enum class Reduction : std::uint8_t { ordered, native };

}  // namespace strata::comm
