// Says what a rank's memory is used for, known before the first step.
#pragma once

#include <string>

#include "train/engine/build_programs.h"

namespace strata::train {

/// Bytes of one tier, by purpose.
struct TierMemory {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t inputs = 0;     ///< inputs and control words
  std::int64_t snapshot = 0;   ///< copies of state for a checkpoint, and buffers for writing it
  std::int64_t transient = 0;  ///< activations, gathered parameters, transfers in flight, scratch
  [[nodiscard]] std::int64_t persistent() const { return parameters + gradients + optimizer; }
  [[nodiscard]] std::int64_t arena() const { return persistent() + inputs + snapshot + transient; }
};

/// Bytes of the device tier, and of the other tiers.
struct MemoryBytes : TierMemory {
  TierMemory pinned, pageable, disk;
};

MemoryBytes count_memory(const compile::StepPrograms& programs);

/// The table that `train` prints at start, one line per purpose.
std::string format_memory(const MemoryBytes& memory);

}  // namespace strata::train
