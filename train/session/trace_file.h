// Writes the trace of a run: one file for all ranks, on one clock.
#pragma once

#include <cstdint>
#include <string>

#include "comm/communicator.h"
#include "runtime/execute/trace.h"

namespace strata::train {

/// Collective. Returns a time of this rank's steady clock that is the same moment on all ranks.
/// Ranks of one host read one clock. For different hosts it takes the moments at which ranks leave
/// an exchange as equal, over a few rounds.
std::int64_t common_zero_ns(comm::Communicator& ranks);

/// Collective. Rank 0 writes the events of all ranks and how many instructions found no room.
/// Returns that number over all ranks. Ranks pass on their text in pieces, all of them together
/// some MiB: it may be larger than what a target of memory leaves. Throws Error on rank 0 when all
/// have done their part; an earlier file of this name then stays as it was.
std::int64_t write_trace(const std::string& path, const runtime::TraceRecorder& recorder,
                         comm::Communicator& ranks);

}  // namespace strata::train
