// A rank's batches, read two steps before they are trained on. When one of them cannot be read,
// this rank still has those of the two steps that every rank begins before it hears of a raised
// flag (train/engine/engine.h): so all end after the same step, and save it.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <vector>

#include "train/engine/engine.h"

namespace strata::train {

/// Counts of one rank in one step.
struct StepShape {
  std::int64_t micro_steps = 1;  ///< of this rank: those of each virtual rank it computes for
  std::int64_t samples = 0;      ///< of a micro-batch
  std::int64_t sequence = 0;     ///< tokens of a sample
};

class BatchesAhead {
 public:
  /// A flag that is raised for step t is heard after step t + 1 has begun.
  static constexpr std::int64_t kSteps = 2;

  /// Reads steps `first` to `end` - 1. Throws what reading throws: while nothing is trained,
  /// nothing can be lost.
  BatchesAhead(FillBatch read, StepShape shape, std::int64_t first, std::int64_t end);

  /// Before step `step` begins, steps in order: reads as far ahead as is needed. Whether the run is
  /// to end, as a batch cannot be read. Not called after the end is asked for: what is read
  /// suffices.
  bool reach(std::int64_t step);

  /// What was read: as FillBatch.
  void give(std::int64_t step, int micro_step, const MicroBatch& batch) const;

  /// What reading threw, if the run is to end for it.
  void rethrow() const;

 private:
  /// The micro-batches of a step, one after the other.
  struct Step {
    std::vector<std::int32_t> tokens, targets;
    std::vector<std::int64_t> samples;
  };

  void read_next();

  FillBatch read_;
  StepShape shape_;
  std::int64_t first_;  ///< step of steps_.front()
  std::int64_t end_;
  std::deque<Step> steps_;
  std::exception_ptr error_;
};

}  // namespace strata::train
