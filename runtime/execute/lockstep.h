// Checks a device against the CPU, one instruction at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "kernels/cpu/cpu_stream.h"
#include "runtime/execute/executor.h"

namespace strata::runtime {

/// The comparisons made, by operation and dtype of the result.
struct LockstepReport {
  struct Row {
    std::int64_t results = 0;
    double worst = 0;  ///< relative L2 distance
    double bound = 0;  ///< kernels::twin_bound
  };
  std::map<std::string, Row> rows;
  /// Makes a table for people.
  [[nodiscard]] std::string to_string() const;
};

/// Makes an executor that runs each instruction on `device`, repeats it on `cpu` with the same
/// inputs, compares, and goes on with the device's results. `start` returns when all is done. It
/// throws InternalError at the first result outside its bound, naming Program, instruction, tensor,
/// the first element that differs and both values. Collectives run on the device's communicator and
/// are not compared. Needs host memory of the arenas' sizes. All arguments outlive it.
std::unique_ptr<Executor> make_lockstep_executor(ExecutorParts parts, kernels::Device& device,
                                                 kernels::CpuDevice& cpu, LockstepReport& report);

}  // namespace strata::runtime
