// Ranks as threads of the test's process.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace strata::runtime {

/// Runs `body` on one thread per rank, each with its communicator, and waits for all. Returns what
/// each rank threw, empty where nothing; an error aborts the communicator, so that nobody waits.
std::vector<std::string> run_ranks(int world, const std::function<void(comm::Communicator&)>& body);

}  // namespace strata::runtime
