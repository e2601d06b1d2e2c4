// What to change in a run that needs more memory than there is, cheapest first.
#pragma once

#include <cstdint>
#include <string>

#include "train/engine/program_set.h"

namespace strata::train {

/// The ranks of a run whose arenas do not fit.
struct CrowdedHost {
  int rank = 0;         ///< whose arena is planned; those of other ranks are nearly as large
  int world = 1;        ///< ranks of the run
  int local_world = 1;  ///< those on this host
  int threads = 1;      ///< of each
};

/// Plans the run again with other settings: a higher ZeRO stage, then smaller micro-batches in more
/// micro-steps, then activation checkpointing, then several of them, in the order of the time that
/// they cost. One line: the first of them whose arenas fit into `free_bytes` of this host (0:
/// unknown; then the first that needs less), with the bytes it needs; or the least that any of them
/// needs. Takes the time of a few plans.
std::string memory_advice(const ProgramRequest& request, const CrowdedHost& host,
                          std::int64_t free_bytes);

}  // namespace strata::train
