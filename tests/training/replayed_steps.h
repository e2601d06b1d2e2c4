// Steps of ranks that are threads, and the same steps simulated with the times that were measured
// in them: what differs is the simulator's structure and not the costs.
#pragma once

#include <cstdint>

#include "tests/training/ranks.h"

namespace strata::tests {

/// Means of rank 0's steps, in seconds.
struct StepSeconds {
  double measured = 0;
  double replayed = 0;  ///< with the time of each instruction of each run
  double running = 0;   ///< the same, counted from the begin of each instruction
  double of_means = 0;  ///< with mean times of instructions, as any step
  double foreseen = 0;  ///< by the machine's rates
};

/// Trains, records all runs of all ranks, and compares the steps after `first`, which is warm.
StepSeconds replay_steps(const TrainingCase& training, std::int64_t first);

/// Returns a model whose instructions take long enough to be measured, and options for steps of 4
/// samples of 128 tokens per rank.
TrainingCase measurable_training(int world, int stage);

}  // namespace strata::tests
