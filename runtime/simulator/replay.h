// A recorded run, simulated: each instruction takes as long as it took.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/mesh.h"
#include "runtime/simulator/measured_times.h"

namespace strata::runtime {

/// The end of one run of a rank, counted from the first start of a run on any rank.
struct ReplayedRun {
  std::int64_t step = 0;
  std::int64_t measured_ns = 0, simulated_ns = 0;
};

/// Starts the recorded runs again on simulated ranks, with the durations of each; per rank. An
/// instruction that ran before the simulator lets it makes simulated times longer than measured
/// ones: a queue, a wait or a meeting is there too much. One that is missing does not show, since
/// what the instruction waited for counts as its own time. Counted from `begin`, the steps lack
/// what threads took to wake and the host to start runs.
std::vector<std::vector<ReplayedRun>> replay(const comm::Mesh& mesh,
                                             const std::vector<Recording>& ranks,
                                             CountedFrom from = CountedFrom::ready);

}  // namespace strata::runtime
