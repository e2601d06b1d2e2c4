// An instruction with addresses, kernel and communicator. Executors make it when they load a
// Program.
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
  comm::Communicator* communicator = nullptr;  ///< serves a collective's axes
  std::vector<kernels::Tensor> inputs;
  std::vector<kernels::Tensor> outputs;
  std::span<std::byte> workspace;
  const std::uint32_t* predicate = nullptr;
  DiskTransfer disk;  ///< set for a transfer between memory and disk

  /// True unless its predicate, which must be in memory that the host can read, is 0.
  [[nodiscard]] bool is_wanted() const { return predicate == nullptr || *predicate != 0; }
};

/// Binds an instruction of `program`. Throws InternalError if `kernels`, those of `backend`, lack
/// the operation or the run lacks the axis. Ends the process if an operand leaves its arena.
BoundInstruction bind_instruction(const Program& program, const Instruction& instruction,
                                  const ExecutorParts& parts, const kernels::KernelTable& kernels,
                                  std::string_view backend);

/// True if it reads an input that the host writes for each run (runtime/passes/staging.h).
bool reads_staged_input(const Program& program, const Instruction& instruction);

}  // namespace strata::runtime
