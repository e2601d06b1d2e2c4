// The engine of a run: Programs with room for its saves, memory that the machine has, observers.
#pragma once

#include "train/run/run_parts.h"

namespace strata::train {

/// Collective; device and disk are there. Says what is planned, throws HostError where the machine
/// has not the memory for it.
void build_engine(RunParts& run);

}  // namespace strata::train
