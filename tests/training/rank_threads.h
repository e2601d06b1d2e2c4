// Ranks of one process: a thread each, on the thread communicator.
#pragma once

#include <functional>

#include "comm/communicator.h"

namespace strata::tests {

/// Runs body(communicator of rank r) on `world` threads. The first error of the lowest rank is
/// thrown again once all have ended; a rank that throws aborts the others.
void on_rank_threads(int world, const std::function<void(comm::Communicator&)>& body);

}  // namespace strata::tests
