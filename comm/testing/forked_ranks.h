// Ranks as forked processes of a test or benchmark.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

namespace strata::comm {

/// Forks `world` processes that run `body(rank)` and end with its result as exit code, and waits
/// for all, rank 0 first. Returns their wait statuses (wait(2)) by rank. An exception ends its
/// process with 70; one that lasts longer than two minutes is ended by SIGALRM.
std::vector<int> run_forked(int world, const std::function<int(int rank)>& body);

}  // namespace strata::comm
