// An instruction with addresses, kernel and communicator: what executors make of it when a Program
// is loaded.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/device/stream.h"
#include "runtime/execute/disk_transfers.h"
#include "runtime/execute/executor.h"

namespace strata::runtime {

struct BoundInstruction {
  kernels::Kernel kernel = nullptr;
  comm::Communicator* communicator = nullptr;  ///< of a collective's axis
  std::vector<kernels::Tensor> inputs;
  std::vector<kernels::Tensor> outputs;
  std::span<std::byte> workspace;
  const std::uint32_t* predicate = nullptr;
  DiskTransfer disk;  ///< of a transfer between memory and disk

  /// Whether it is to act now: its predicate, which the host can read here, is not 0.
  [[nodiscard]] bool is_wanted() const { return predicate == nullptr || *predicate != 0; }
};

/// An instruction of `program`. Throws InternalError when `kernels`, those of `backend`, lack the
/// operation or the run lacks the axis. Ends the process when an operand leaves its arena.
BoundInstruction bind_instruction(const Program& program, const Instruction& instruction,
                                  const ExecutorParts& parts, const kernels::KernelTable& kernels,
                                  std::string_view backend);

/// Whether it reads what the host writes for each run (runtime/passes/staging.h).
bool reads_staged_input(const Program& program, const Instruction& instruction);

}  // namespace strata::runtime
