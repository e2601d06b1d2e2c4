// Runs ranks as threads of the test's process.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace strata::runtime {

/// Runs `body` on one thread per rank, each with its communicator, and waits for all. Returns each
/// rank's error, empty if none; an error aborts the communicator, so that no rank waits.
std::vector<std::string> run_ranks(int world, const std::function<void(comm::Communicator&)>& body);

}  // namespace strata::runtime
