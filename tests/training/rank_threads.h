// Ranks of one process: a thread each, on the thread communicator.
#pragma once

#include <functional>

#include "comm/communicator.h"

namespace strata::tests {

/// Runs body(communicator of rank r) on `world` threads. A rank that throws aborts the others; its
/// arena may go on the way out (PeerCommunicator sees to it). Once all have ended, the error of the
/// lowest rank that failed by itself is thrown again, else that of the lowest one that blames
/// another.
void on_rank_threads(int world, const std::function<void(comm::Communicator&)>& body);

}  // namespace strata::tests
