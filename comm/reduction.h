// The choice between Strata's own sums and those of a library.
#pragma once

#include <cstdint>

namespace strata::comm {

/// The way in which reduce_scatter adds. ordered: as collective.h says, with the same bits on every
/// backend. native: in the order and precision of the library that moves the bytes. It needs less
/// scratch and is often faster, but bits depend on the library and on the number of ranks.
enum class Reduction : std::uint8_t { ordered, native };

}  // namespace strata::comm
