// Makes a run's open settings for a target of memory, before its data are opened.
#pragma once

#include "train/run/run_parts.h"

namespace strata::train {

/// Collective, once device, disk and machine are known and before anything depends on the settings
/// that may change. Does nothing without --target-memory. Rank 0 takes the settings that were
/// planned for the checkpoint that the run will go on from, if the same was asked for there and
/// they still fit, or plans, for the rank with the least free memory; all ranks take its settings
/// into `run.options` and the request's configuration, and rank 0 prints them. Throws OutOfMemory
/// on all ranks if nothing fits, InvalidArgument for settings that are wrong, ConfigError for a
/// target that this machine does not have.
void plan_memory(RunParts& run);

}  // namespace strata::train
