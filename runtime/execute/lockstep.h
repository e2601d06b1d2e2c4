// Checking a device against the CPU, one instruction at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "kernels/cpu/cpu_stream.h"
#include "runtime/execute/executor.h"

namespace strata::runtime {

/// What was compared, by operation and type of result.
struct LockstepReport {
  struct Row {
    std::int64_t results = 0;
    double worst = 0;  ///< relative L2 distance
    double bound = 0;  ///< kernels::twin_bound
  };
  std::map<std::string, Row> rows;
  /// A table for people.
  [[nodiscard]] std::string to_string() const;
};

/// Runs each instruction on `device`, and with the inputs that it got there on `cpu`, and compares.
/// The device's results go on. `start` returns when all is done, and throws InternalError at the
/// first result outside its bound, naming Program, instruction, tensor, the first element that
/// differs and both values. Collectives run on the device's communicator and are not compared.
/// Needs host memory of the arenas' sizes. All arguments outlive it.
std::unique_ptr<Executor> make_lockstep_executor(ExecutorParts parts, kernels::Device& device,
                                                 kernels::CpuDevice& cpu, LockstepReport& report);

}  // namespace strata::runtime
