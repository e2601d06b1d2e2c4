// Runs ranks as forked processes of a test or benchmark.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

namespace strata::comm {

/// Forks `world` processes that run `body(rank)` and exit with its result, and waits for all, rank
/// 0 first. Returns their wait statuses (wait(2)) by rank. A process with an exception exits with
/// 70; SIGALRM ends one that runs for more than two minutes.
std::vector<int> run_forked(int world, const std::function<int(int rank)>& body);

}  // namespace strata::comm
