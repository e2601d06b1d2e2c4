// Options that depend on other counts: of steps, and of the samples of the data.
#pragma once

#include <cstdint>
#include <string>

#include "train/config/options.h"

namespace strata::train {

/// Computes steps from epochs, warm-up from its ratio, the schedule's end, and intervals given as
/// "strategies" or parts of all steps, by the rules of transformers' Trainer. `samples`: windows of
/// one pass over the data; 0: not known yet, what needs them waits. Calling it again changes
/// nothing unless the global batch has changed.
void settle_steps(TrainOptions& options, std::int64_t samples);

/// Says whether schedules of this type end, which they do at scheduler.total_num_steps.
bool has_end(SchedulerType type);

/// Steps of one pass: the last one may begin the next pass.
std::int64_t steps_per_epoch(const TrainOptions& options, std::int64_t samples);

/// "3 epochs of 120 samples, 16 per step: 24 steps, 2 of them warm-up"; "" when only steps were
/// asked for.
std::string describe_epochs(const TrainOptions& options, std::int64_t samples);

}  // namespace strata::train
