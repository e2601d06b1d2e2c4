// Reads a rank's batches two steps before they are trained on. If one cannot be read, this rank
// still has those of the two steps that every rank begins before it hears of a raised flag
// (train/engine/engine.h). So all ranks end after the same step, and save it.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <vector>

#include "train/engine/engine.h"

namespace strata::train {

/// The sizes of one rank's batches in a step.
struct StepShape {
  std::int64_t micro_steps = 1;  ///< this rank's, including each of its virtual ranks
  std::int64_t samples = 0;      ///< samples in a micro-batch
  std::int64_t sequence = 0;     ///< tokens in a sample
};

class BatchesAhead {
 public:
  /// Ranks hear of a flag raised for step t only after step t + 1 has begun.
  static constexpr std::int64_t kSteps = 2;

  /// Reads the first of steps `first` to `end` - 1. Throws as reading does: no training is lost.
  BatchesAhead(FillBatch read, StepShape shape, std::int64_t first, std::int64_t end);

  /// Reads as far ahead as step `step`, which is about to begin, needs. Returns true if the run
  /// must end because a batch cannot be read. Called for steps in order, and not after the run was
  /// asked to end: what has been read suffices.
  bool reach(std::int64_t step);

  /// Copies a batch that was read, as FillBatch.
  void give(std::int64_t step, int micro_step, const MicroBatch& batch) const;

  /// Throws what reading threw, if anything.
  void rethrow() const;

 private:
  /// The micro-batches of a step, one after another.
  struct Step {
    std::vector<std::int32_t> tokens, targets;
    std::vector<std::int64_t> samples;
  };

  void read_next();

  FillBatch read_;
  StepShape shape_;
  std::int64_t first_;  ///< the step of steps_.front()
  std::int64_t end_;
  std::deque<Step> steps_;
  std::exception_ptr error_;
};

}  // namespace strata::train
