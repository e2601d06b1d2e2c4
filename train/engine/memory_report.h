// What a rank's memory is for, known before the first step.
#pragma once

#include <string>

#include "train/engine/build_programs.h"

namespace strata::train {

/// Bytes of one tier.
struct TierMemory {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t inputs = 0;     ///< and control words
  std::int64_t snapshot = 0;   ///< state while a checkpoint is written from it, and for writing
  std::int64_t transient = 0;  ///< activations, gathered parameters, what is in flight, scratch
  [[nodiscard]] std::int64_t persistent() const { return parameters + gradients + optimizer; }
  [[nodiscard]] std::int64_t arena() const { return persistent() + inputs + snapshot + transient; }
};

/// Bytes of the device, and of the tiers behind it.
struct MemoryBytes : TierMemory {
  TierMemory pinned, pageable, disk;
};

MemoryBytes count_memory(const compile::StepPrograms& programs);

/// The table that `train` prints at start, one line per purpose.
std::string format_memory(const MemoryBytes& memory);

}  // namespace strata::train
