// The interface by which tests run kernels, whatever the backend. The backend under test is chosen
// at link time: testing/cpu_runner.cpp or cuda/testing/simulated/simulated_runner.cpp.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/device/stream.h"
#include "kernels/ops/operation.h"

namespace strata::kernels {

/// Runs one call on a backend; `inputs` and `outputs` lie in host memory.
using Runner = std::function<void(const Operation& operation, std::span<const Tensor> inputs,
                                  std::span<const Tensor> outputs, const Attributes& attributes)>;

struct NamedRunner {
  std::string name;
  Runner run;
};

/// Returns every way in which the backend under test runs kernels. CPU: each instruction set of the
/// machine and the portable fallback, with 1, 2 and 3 threads. Simulation: three orders of threads.
std::vector<NamedRunner> all_runners();

/// True if kernels run on a real GPU, which is of no more use to the process after a kernel traps.
bool runs_on_gpu();

/// Returns one of them, for tests that look at a single result.
Runner any_runner();

}  // namespace strata::kernels
