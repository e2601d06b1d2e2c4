// Ranks as threads of one process, on the thread communicator.
#pragma once

#include <functional>

#include "comm/communicator.h"
#include "comm/host_layout.h"

namespace strata::tests {

/// Runs body(communicator of rank r) on `world` threads. A rank that throws aborts the others; its
/// arena may go on the way out (PeerCommunicator sees to it). When all have ended, rethrows the
/// error of the lowest rank that failed by itself, or else of the lowest rank that blames another.
void on_rank_threads(int world, const std::function<void(comm::Communicator&)>& body);
/// The same on threads that play hosts.
void on_rank_threads(const comm::HostLayout& layout,
                     const std::function<void(comm::Communicator&)>& body);

}  // namespace strata::tests
