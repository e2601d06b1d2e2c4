// Builds the engine of a run: Programs with room for saves, within the machine's memory, observed.
#pragma once

#include <string>

#include "train/run/run_parts.h"

namespace strata::train {

/// Collective; device and disk exist. Prints the plan. Returns which memory the plan lacks, and
/// then makes no engine; empty if all is there.
[[nodiscard]] std::string build_engine(RunParts& run);

}  // namespace strata::train
