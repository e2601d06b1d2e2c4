// Computes options that depend on the number of steps or of the data's samples.
#pragma once

#include <cstdint>
#include <string>

#include "train/config/options.h"

namespace strata::train {

/// Computes steps from epochs, warm-up from its ratio, the schedule's end, and intervals that are
/// given as "strategies" or parts of all steps, by the rules of transformers' Trainer. `samples`:
/// windows in one pass over the data; 0: not yet known, and what depends on them is left open.
/// Another call changes nothing unless the global batch has changed.
void settle_steps(TrainOptions& options, std::int64_t samples);

/// True if schedules of this type have an end, scheduler.total_num_steps.
bool has_end(kernels::ScheduleKind type);

/// Steps in one pass; the last one may take samples of the next pass.
std::int64_t steps_per_epoch(const TrainOptions& options, std::int64_t samples);

/// "3 epochs of 120 samples, 16 per step: 24 steps, 2 of them warm-up"; "": only steps given.
std::string describe_epochs(const TrainOptions& options, std::int64_t samples);

/// "the warm-up of 100 steps is longer than the run of 50: ..."; "": the run ends after its
/// warm-up.
std::string describe_unfinished_warmup(const TrainOptions& options);

/// "the schedule of 3 steps ends before the run of 6: the learning rate is 0 for ..."; "": steps
/// are taken to the end of the run, or their number is not known.
std::string describe_ended_schedule(const TrainOptions& options);

}  // namespace strata::train
