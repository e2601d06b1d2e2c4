// Tells what each block of a model uses of the device in a compiled step: bytes and time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compile/step_programs.h"
#include "machine/machine.h"

namespace strata::plan {

struct BlockUse {
  /// The most bytes of the device that any Program uses while it is in the block.
  std::int64_t forward_bytes = 0;
  std::int64_t backward_bytes = 0;
  /// Foreseen time of the block's computation in one run of a micro-step, the mean of all runs.
  std::int64_t forward_ns = 0;
  std::int64_t backward_ns = 0;
};

struct StepUse {
  std::vector<BlockUse> blocks;  ///< one for each of the model's blocks
  std::int64_t runs = 0;         ///< of Programs in a step of this rank
  /// Shares of the time of computation during which the link works already.
  double download_share = 0, upload_share = 0;
  std::int64_t persistent_bytes = 0;  ///< of the device
  bool has_transfers = false;         ///< true: other queues than that of computation have work
};

/// Looks at all Programs of micro-steps of Plan::shape. What runs between the computations of two
/// blocks, such as a gather or an update, counts to the block before it.
StepUse measure_blocks(const compile::StepPrograms& programs, const machine::Machine& machine,
                       const std::vector<std::string>& blocks);

}  // namespace strata::plan
