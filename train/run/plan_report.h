// What a run says of itself before its first step: model, division over ranks, devices, memory.
#pragma once

#include <string>

#include "train/config/options.h"
#include "train/engine/program_set.h"

namespace strata::train {

/// What of it the Programs do not know.
struct RunFacts {
  int ranks = 1;
  std::string transport;  ///< between ranks
  std::string device;     ///< that rank 0 computes on
  std::string place;      ///< among NUMA nodes; empty: there is one
  std::string disk;       ///< empty: nothing lives there
};

/// Several lines, each with its end.
std::string describe_plan(const TrainOptions& options, const ProgramSet& programs,
                          const RunFacts& facts);

}  // namespace strata::train
