// Builds the engine of a run: Programs with room for saves, within the machine's memory, observed.
#pragma once

#include "train/run/run_parts.h"

namespace strata::train {

/// Collective; device and disk exist. Prints the plan; throws HostError if memory is too small.
void build_engine(RunParts& run);

}  // namespace strata::train
