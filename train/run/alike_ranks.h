// Checks that all ranks mean the same run, before time is spent on it. Launchers compare what was
// typed; environment and files of other hosts may still differ.
#pragma once

#include "train/run/run_parts.h"

namespace strata::train {

/// Collective: compares each resolved option and the model's shape. Throws ConfigError on all ranks
/// that names what differs, both values and both hosts. On several hosts threads and the paths of
/// what is read, or used for offload, may differ.
void require_same_settings(RunParts& run);

/// Collective: compares, on several hosts, this program, the data and samples of the weights that
/// will be loaded. Throws as above. Rank 0 notes processors
/// that differ.
void require_same_files(RunParts& run);

}  // namespace strata::train
