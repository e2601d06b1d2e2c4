// The trace of a run: one file for all ranks, on one clock.
#pragma once

#include <cstdint>
#include <string>

#include "comm/communicator.h"

namespace strata::train {

/// Collective. A moment of this rank's steady clock that is the same moment on all ranks: ranks of
/// one host read one clock; where hosts differ, the moments at which ranks leave a few rounds of
/// exchange are taken for the same.
std::int64_t common_zero_ns(comm::Communicator& ranks);

/// Collective. Rank 0 writes what all ranks have to show, `events` of each with a comma after every
/// line, and how many instructions found no room. Returns that number, of all ranks; throws IoError
/// on rank 0, when all have done their part.
std::int64_t write_trace(const std::string& path, const std::string& events, std::int64_t dropped,
                         comm::Communicator& ranks);

}  // namespace strata::train
